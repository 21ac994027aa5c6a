/** `berth cp`: copies files and folders between this machine and a sandbox. See copy/ for the transfers. */
import type { Sandbox as SandboxHandle } from "../../client/index.ts";
import { required } from "../args/option.ts";
import { parseSandboxOptions, sandboxOptions } from "../args/sandbox-options.ts";
import { command } from "../command.ts";
import type { Context } from "../context.ts";
import { type CopyResult, download, upload } from "../copy/transfer.ts";
import { Failure } from "../failure.ts";
import { findSandbox } from "../find-sandbox.ts";
import { acquireLease } from "../lock/acquire-lease.ts";
import { formatSize } from "../output/format.ts";
import { nextExecWords } from "../run/report-kept.ts";

export const cpCommand = command({
  name: "cp",
  summary: "Copy files and folders to the sandbox and from it",
  about:
    "A path in the sandbox begins with a colon, or with its id and a colon; it is relative to /workspace unless it " +
    "begins with a slash. As with cp, a copy to an existing folder goes into it. " +
    nextExecWords,
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
    const id = options.id ?? from.sandbox ?? to.sandbox;
    const target = parseSandboxOptions({ ...options, id });
    const found = await findSandbox(context, { ...target, make: false });
    const progress = ({ bytes }: { bytes: number }) =>
      context.progress.show(`${args.from} → ${args.to}: ${formatSize(bytes)}`);
    const copied = await copy(context, found.sandbox, from, to, progress);
    context.progress.end();
    const document = { sandbox: found.id, from: args.from, ...copied };
    context.output.printResult(document, `${formatSize(copied.bytes)} to ${copied.to}`);
    const isSynced = to.isRemote && !/^\/(?!workspace(\/|$))/.test(to.path);
    if (isSynced && found.checkout !== undefined && context.tty && !context.json) {
      context.output.info(nextExecWords);
    }
  },
});

async function copy(
  context: Context,
  handle: SandboxHandle,
  from: CopyPath,
  to: CopyPath,
  progress: (done: { bytes: number }) => void,
): Promise<CopyResult> {
  const signal = context.interrupts.requested;
  const sandbox = handle.with({ signal });
  try {
    if (from.isRemote) return await download(sandbox, from.path, to.path, context.cwd, progress);
    await using lease = await acquireLease(context, handle);
    const options = { lease: lease.token, signal };
    return await upload(sandbox, from.path, to.path, context.cwd, options, progress);
  } catch (thrown) {
    // An interrupted transfer may fail with any error.
    signal.throwIfAborted();
    throw thrown;
  }
}

type CopyPath = { isRemote: boolean; sandbox: string | undefined; path: string };

/** `path` here, `:path` in the checkout's sandbox, `<id>:path` in that sandbox. */
export function parseCopyPath(text: string): CopyPath {
  const [, sandbox = "", path] = /^([a-z][a-z0-9]{23})?:(.*)$/s.exec(text) ?? [];
  if (path === undefined) return { isRemote: false, sandbox: undefined, path: text };
  return {
    isRemote: true,
    sandbox: sandbox === "" ? undefined : sandbox,
    path: path === "" ? "." : path,
  };
}
