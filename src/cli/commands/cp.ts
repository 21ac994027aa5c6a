/**
 * Owns `berth cp`: files and folders between this machine and a sandbox.
 * Does not own how they travel (copy/).
 */
import { required } from "../args/positional.ts";
import { readSandbox, sandboxOptions } from "../args/sandbox.ts";
import { command } from "../command.ts";
import type { Context } from "../context.ts";
import { download } from "../copy/download.ts";
import { type Place, readPlace } from "../copy/place.ts";
import { upload } from "../copy/upload.ts";
import { Failure } from "../failure.ts";
import { findSandbox } from "../find-sandbox.ts";
import { Interrupts } from "../live/interrupts.ts";
import { takeLease } from "../lock/take-lease.ts";
import { size } from "../output/size.ts";
import { codeOfInterrupt } from "../run/run.ts";

export const cpCommand = command({
  name: "cp",
  summary: "copy files and folders to the sandbox and from it",
  about:
    "A place in the sandbox begins with a colon, or with its id and a colon; it is below /workspace unless it " +
    "begins with a slash. As with cp, what is copied to a folder that is there comes into it.",
  args: {
    from: required("from", "a path here, or `:path` there"),
    to: required("to", "the other side"),
  },
  options: sandboxOptions,
  examples: [
    ["A folder from the sandbox", "berth cp :coverage ."],
    ["A file to another one", "berth cp data.sql k3v9q2m7x1c5b8n4tq0w8e2r:/tmp/data.sql"],
    ["A local name with a colon", "berth cp ./a:b :"],
  ],
  // Of a copy that is broken off nothing must stay.
  ownSignals: true,
  async run(context, { args, options }) {
    const from = readPlace(args.from);
    const to = readPlace(args.to);
    if (from.isRemote === to.isRemote) {
      throw new Failure("one of the two must be in a sandbox, and one here", {
        hint: "Begin the one in the sandbox with a colon: `berth cp :dist .`.",
        code: "bad_usage",
      });
    }
    const id = from.sandbox ?? to.sandbox;
    const which = readSandbox({ ...options, id: options.id ?? id });
    using interrupts = new Interrupts();
    try {
      return await copy(context, which, [from, to], args, interrupts.asked);
    } catch (thrown) {
      // What is broken off may fail in any words.
      return codeOfInterrupt(context, interrupts.first ?? thrown, interrupts);
    }
  },
});

async function copy(
  context: Context,
  which: ReturnType<typeof readSandbox>,
  [from, to]: [Place, Place],
  args: { from: string; to: string },
  signal: AbortSignal,
): Promise<number> {
  const found = await findSandbox(context, { ...which, make: false, signal });
  const sandbox = found.sandbox.with({ signal });
  const tell = (bytes: number) =>
    context.progress.tell(`${args.from} → ${args.to}: ${size(bytes)}`);
  let copied: { bytes: number; to: string };
  if (from.isRemote) {
    copied = await download(sandbox, from.path, to.path, context.cwd, tell);
  } else {
    await using lease = await takeLease(context, found.sandbox, { signal });
    const around = { lease: lease.token, signal };
    copied = await upload(sandbox, from.path, to.path, context.cwd, around, tell);
  }
  context.progress.end();
  if (context.json) context.output.document({ sandbox: found.id, from: args.from, ...copied });
  else context.output.line(`${size(copied.bytes)} to ${copied.to}`);
  return 0;
}
