/** Runs a command to its end, or reads the log of a process: output is cut, and a cursor says where to read on. */
import type { Process } from "../../protocol/process.ts";
import { EventReader } from "../server-events.ts";
import type { ToolCall } from "./messages.ts";
import { rememberCommand } from "./running.ts";
import { leaseOf, pick, segment } from "./tools.ts";

const outputBytesMax = 30_000;
const waitMaxMs = 60_000;
const timeoutMs = 600_000;
const progressEveryMs = 1_000;

type Exit = { exitCode: number | null; signal: string | null; timedOut: boolean };
type Output = { output: string; cursor: number; cut: boolean; exit?: Exit };

export async function runCommand(call: ToolCall): Promise<object> {
  const { calls, sandbox, args, key, signal } = call;
  const body = {
    ...pick(args, ["command", "cwd"]),
    timeoutMs: args.timeout_ms ?? timeoutMs,
    // A client that leaves ends its command, also where nothing of this call can run any more.
    endsWithReader: true,
  };
  const headers = leaseOf(args);
  const started = await calls.json<Process>("POST", `${sandbox}/processes`, body, headers);
  const path = `${sandbox}/processes/${started.id}`;
  const end = () => calls.json("DELETE", path, undefined, headers).catch(() => undefined);
  const isWanted = rememberCommand(key, { path, headers });
  signal.addEventListener("abort", end);
  // The client may have left while the process was being started.
  if (signal.aborted || !isWanted) await end();
  try {
    const { output, cursor, cut, exit } = await follow(call, `${path}/logs?follow=1`, undefined);
    return {
      output,
      ...exit,
      ...(cut ? { cut: true, process: started.id, cursor } : {}),
    };
  } finally {
    signal.removeEventListener("abort", end);
  }
}

export async function readLog(call: ToolCall): Promise<object> {
  const { args, sandbox } = call;
  const waitMs = Math.min(Number(args.wait_ms ?? 0), waitMaxMs);
  const query = new URLSearchParams({ after: String(args.after ?? 0) });
  if (waitMs > 0) query.set("follow", "1");
  const path = `${sandbox}/processes/${segment(args.process)}/logs?${query}`;
  return follow(call, path, waitMs > 0 ? waitMs : undefined);
}

/** Both streams in the order in which they were written. Beyond the limit a run waits for the exit and drops output. */
async function follow(
  { calls, args, signal, progress }: ToolCall,
  path: string,
  waitMs: number | undefined,
): Promise<Output> {
  const response = await calls.send(path, { headers: { accept: "text/event-stream" } });
  const events = new EventReader(response.body as ReadableStream<Uint8Array>);
  const isRun = args.command !== undefined;
  const read: Output = { output: "", cursor: Number(args.after ?? 0), cut: false };
  const pieces: Buffer[] = [];
  let [bytes, shownAt] = [0, 0];
  const late = new Promise<undefined>((resolve) => {
    if (waitMs !== undefined) setTimeout(() => resolve(undefined), waitMs);
    signal.addEventListener("abort", () => resolve(undefined));
  });
  for (;;) {
    const event = await Promise.race([events.next(), late]);
    if (event === undefined) break;
    if (event.name === "exit") {
      read.exit = JSON.parse(event.data) as Exit;
      break;
    }
    if (event.name !== "output" || read.cut) continue;
    const piece = Buffer.from((JSON.parse(event.data) as { data: string }).data, "base64");
    const part = piece.subarray(0, outputBytesMax - bytes);
    pieces.push(part);
    bytes += part.length;
    read.cursor += part.length;
    read.cut = part.length < piece.length;
    if (Date.now() - shownAt >= progressEveryMs) {
      shownAt = Date.now();
      progress(bytes, piece.toString().slice(-200));
    }
    if (read.cut && !isRun) break;
  }
  events.cancel();
  read.output = Buffer.concat(pieces).toString();
  return read;
}
