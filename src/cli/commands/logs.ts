/**
 * Owns `berth logs`: what a process wrote, to the same streams; what it writes from now on with --follow.
 * Does not own reading it (the SDK's followLogs, which comes back after a cut).
 */
import { once } from "node:events";
import type { SandboxHandle } from "../../client/index.ts";
import type { Process } from "../../protocol/process.ts";
import { choice, flag } from "../args/option.ts";
import { optional } from "../args/positional.ts";
import { readSandbox, sandboxOptions } from "../args/sandbox.ts";
import { command } from "../command.ts";
import type { Context } from "../context.ts";
import { Failure } from "../failure.ts";
import { findSandbox } from "../find-sandbox.ts";

export const logsCommand = command({
  name: "logs",
  summary: "print what a process wrote",
  args: { process: optional("process", "as `berth ps` names it; the newest one unless given") },
  options: {
    ...sandboxOptions,
    follow: flag("-f, --follow", "and what it writes until it ends"),
    stream: choice("--stream <stream>", "only that", ["stdout", "stderr"]),
  },
  examples: [
    ["Of the newest", "berth logs"],
    ["As it comes", "berth logs -f --stream stderr"],
  ],
  async run(context, { args, options: { follow, stream, ...which } }) {
    const { sandbox } = await findSandbox(context, {
      ...readSandbox(which),
      ...{ make: false, ready: false },
    });
    const process = await chosen(sandbox, args.process);
    const options = { follow, ...(stream === undefined ? {} : { stream }) };
    for await (const event of sandbox.followLogs(process.id, options)) {
      if (event.type === "output") await write(context, event.stream, event.bytes);
      else if (event.type === "truncated") tellGap(context, event);
      else if (context.json) context.output.document(event);
    }
    return 0;
  },
});

async function chosen(sandbox: SandboxHandle, id: string | undefined): Promise<Process> {
  if (id !== undefined) return await sandbox.process(id);
  const { processes } = await sandbox.processes();
  const [newest] = [...processes].sort((one, other) => (one.startedAt < other.startedAt ? 1 : -1));
  if (newest !== undefined) return newest;
  throw new Failure("there is no process in the sandbox", { code: "no_process" });
}

/** At the pace of whoever reads it. */
async function write(
  { json, output, stdout, stderr }: Context,
  stream: "stdout" | "stderr",
  bytes: Uint8Array,
): Promise<void> {
  if (json) {
    return output.document({ type: "output", stream, data: Buffer.from(bytes).toString("base64") });
  }
  const to = stream === "stdout" ? stdout : stderr;
  if (!to.write(bytes)) await once(to, "drain");
}

function tellGap({ json, output }: Context, gap: { type: string; from: number; to: number }): void {
  if (json) output.document(gap);
  else output.warn(`${gap.to - gap.from} bytes are no longer kept`);
}
