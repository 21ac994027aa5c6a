/**
 * `berth cp`: copies files and folders between this machine and a sandbox. See copy/ for the transfers.
 */
import { required } from "../args/positional.ts";
import { parseSandboxOptions, sandboxOptions } from "../args/sandbox-options.ts";
import { command } from "../command.ts";
import type { Context } from "../context.ts";
import { type CopyPath, parseCopyPath } from "../copy/copy-path.ts";
import { download } from "../copy/download.ts";
import { upload } from "../copy/upload.ts";
import { Failure } from "../failure.ts";
import { findSandbox } from "../find-sandbox.ts";
import { Interrupts } from "../interrupts.ts";
import { acquireLease } from "../lock/acquire-lease.ts";
import { formatSize } from "../output/size.ts";
import { interruptExitCode } from "../run/run.ts";

export const cpCommand = command({
  name: "cp",
  summary: "Copy files and folders to the sandbox and from it",
  about:
    "A path in the sandbox begins with a colon, or with its id and a colon; it is relative to /workspace unless it " +
    "begins with a slash. As with cp, a copy to an existing folder goes into it.",
  args: {
    from: required("from", "Path on this machine, or `:path` in the sandbox"),
    to: required("to", "Path on the other side"),
  },
  options: sandboxOptions,
  examples: [
    ["A folder from the sandbox", "berth cp :coverage ."],
    ["A file to another sandbox", "berth cp data.sql k3v9q2m7x1c5b8n4tq0w8e2r:/tmp/data.sql"],
    ["A local name with a colon", "berth cp ./a:b :"],
  ],
  // An interrupted copy must leave nothing behind.
  ownSignals: true,
  async run(context, { args, options }) {
    const from = parseCopyPath(args.from);
    const to = parseCopyPath(args.to);
    if (from.isRemote === to.isRemote) {
      throw new Failure("One path must be in a sandbox and the other on this machine.", {
        hint: "Begin the path in the sandbox with a colon: `berth cp :dist .`.",
        code: "bad_usage",
      });
    }
    const id = from.sandbox ?? to.sandbox;
    const target = parseSandboxOptions({ ...options, id: options.id ?? id });
    using interrupts = new Interrupts();
    try {
      return await copy(context, target, [from, to], args, interrupts.requested);
    } catch (thrown) {
      // An interrupted transfer may fail with any error.
      return interruptExitCode(context, interrupts.first ?? thrown, interrupts);
    }
  },
});

async function copy(
  context: Context,
  target: ReturnType<typeof parseSandboxOptions>,
  [from, to]: [CopyPath, CopyPath],
  args: { from: string; to: string },
  signal: AbortSignal,
): Promise<number> {
  const found = await findSandbox(context, { ...target, make: false, signal });
  const sandbox = found.sandbox.with({ signal });
  const report = (bytes: number) =>
    context.progress.show(`${args.from} → ${args.to}: ${formatSize(bytes)}`);
  let copied: { bytes: number; to: string };
  if (from.isRemote) {
    copied = await download(sandbox, from.path, to.path, context.cwd, report);
  } else {
    await using lease = await acquireLease(context, found.sandbox, { signal });
    const options = { lease: lease.token, signal };
    copied = await upload(sandbox, from.path, to.path, context.cwd, options, report);
  }
  context.progress.end();
  if (context.json) context.output.printJson({ sandbox: found.id, from: args.from, ...copied });
  else context.output.print(`${formatSize(copied.bytes)} to ${copied.to}`);
  return 0;
}
