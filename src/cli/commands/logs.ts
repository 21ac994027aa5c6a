/**
 * Owns `berth logs`: what a process wrote, to the same streams; what it writes from now on with --follow.
 * Does not own reading it (the SDK's followLogs, which comes back after a cut).
 */
import { choice, flag } from "../args/option.ts";
import { optional } from "../args/positional.ts";
import { readSandbox, sandboxOptions } from "../args/sandbox.ts";
import { command } from "../command.ts";
import type { Context } from "../context.ts";
import { findProcess } from "../find-process.ts";
import { findSandbox } from "../find-sandbox.ts";

export const logsCommand = command({
  name: "logs",
  summary: "print what a process wrote",
  args: { process: optional("process", "its name or id; the newest one unless given") },
  options: {
    ...sandboxOptions,
    follow: flag("-f, --follow", "and what it writes until it ends"),
    stream: choice("--stream <stream>", "only that", ["stdout", "stderr"]),
  },
  examples: [
    ["Of the newest", "berth logs"],
    ["As it comes", "berth logs -f --stream stderr"],
    ["Of the newest of a name", "berth logs web -f"],
  ],
  json: "stdout is JSON documents, one a line",
  async run(context, { args, options: { follow, stream, ...which } }) {
    const { sandbox } = await findSandbox(context, {
      ...readSandbox(which),
      ...{ make: false, ready: false },
    });
    const process = await findProcess(sandbox, args.process);
    const options = { follow, ...(stream === undefined ? {} : { stream }) };
    for await (const event of sandbox.followLogs(process.id, options)) {
      if (event.type === "output") await write(context, event.stream, event.bytes);
      else if (event.type === "truncated") tellGap(context, event);
      else if (context.json) context.output.document(event);
    }
    return 0;
  },
});

/** At the pace of whoever reads it. */
async function write(
  { json, output, stdout, stderr }: Context,
  stream: "stdout" | "stderr",
  bytes: Uint8Array,
): Promise<void> {
  const to = json || stream === "stdout" ? stdout : stderr;
  if (json)
    output.document({ type: "output", stream, data: Buffer.from(bytes).toString("base64") });
  else to.write(bytes);
  // `once` would take the loss of the reader for a failure: that is looked after where the process is (main.ts).
  if (to.writableNeedDrain) await new Promise<void>((resolve) => to.once("drain", resolve));
}

function tellGap({ json, output }: Context, gap: { type: string; from: number; to: number }): void {
  if (json) output.document(gap);
  else output.warn(`${gap.to - gap.from} bytes are no longer kept`);
}
