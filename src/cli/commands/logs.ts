/** `berth logs`: prints what a process wrote, to the same streams, and with `--follow` what it writes from now on. */
import { choice, flag, optional } from "../args/option.ts";
import { sandboxOptions } from "../args/sandbox-options.ts";
import { command } from "../command.ts";
import type { Context } from "../context.ts";
import { findProcess } from "../find-process.ts";
import { findExistingSandbox } from "../find-sandbox.ts";

export const logsCommand = command({
  name: "logs",
  summary: "Print what a process wrote",
  args: { process: optional("process", "Name or id (default: the newest process)") },
  options: {
    ...sandboxOptions,
    follow: flag("-f, --follow", "Continue until the process ends"),
    stream: choice("--stream <stream>", "Only this stream", ["stdout", "stderr"]),
  },
  examples: [
    ["Of the newest process", "berth logs"],
    ["As it is written", "berth logs -f --stream stderr"],
    ["Of the newest of a name", "berth logs web -f"],
  ],
  json: "Print JSON documents on stdout, one per line",
  async run(context, { args, options }) {
    const { json, output } = context;
    const { sandbox } = await findExistingSandbox(context, options);
    const process = await findProcess(sandbox, args.process);
    const { follow, stream } = options;
    for await (const event of sandbox.process(process.id).logs({
      follow,
      ...(stream && { stream }),
    })) {
      if (event.type === "output") await write(context, event.stream, event.bytes);
      else if (json) output.printJson(event);
      else if (event.type === "truncated") {
        output.warn(`${event.to - event.from} bytes of the log are no longer stored.`);
      }
    }
    return 0;
  },
});

/** Waits for the reader of the output. */
async function write(
  { json, output, stdout, stderr }: Context,
  stream: "stdout" | "stderr",
  bytes: Uint8Array,
): Promise<void> {
  const to = json || stream === "stdout" ? stdout : stderr;
  if (json)
    output.printJson({ type: "output", stream, data: Buffer.from(bytes).toString("base64") });
  else to.write(bytes);
  // `once` would reject when the reader closes the output; main.ts handles that.
  if (to.writableNeedDrain) await new Promise<void>((resolve) => to.once("drain", resolve));
}
