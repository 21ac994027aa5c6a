/**
 * Owns following the output of a process: in order, without loss or repeat over cut connections, until its exit.
 * Does not own how a stream is read and opened again (live-stream.ts), nor what becomes of the bytes.
 */
import type { SandboxApi } from "../../protocol/api.ts";
import { BerthError } from "../../protocol/error-codes.ts";
import { follow, type Message, type StreamOptions } from "./stream.ts";

export type LogEvent =
  | { type: "output"; stream: "stdout" | "stderr"; bytes: Uint8Array; cursor: number }
  /** Output between the two cursors is no longer kept. */
  | { type: "truncated"; from: number; to: number }
  /** The last one. */
  | { type: "exit"; exitCode: number | null; signal: string | null; timedOut: boolean };

export type FollowOptions = StreamOptions & {
  /** A cursor of an earlier event; 0 is the beginning. */
  after?: number;
  stream?: "stdout" | "stderr";
  /** false: only what is there already; `exit` is told where it has exited. */
  follow?: boolean;
};

type Source = {
  processLogs(
    process: string,
    query: Parameters<SandboxApi["processLogs"]>[1] & { signal: AbortSignal },
  ): Promise<AsyncIterable<Uint8Array>>;
};

export function followLogs(
  sandbox: Source,
  process: string,
  { after = 0, stream, follow: goesOn = true, ...options }: FollowOptions = {},
): AsyncGenerator<LogEvent, void, undefined> {
  let cursor = after;
  const followed = {
    open(signal: AbortSignal) {
      const query = { after: cursor, follow: goesOn, ...(stream === undefined ? {} : { stream }) };
      return sandbox.processLogs(process, { ...query, signal });
    },
    read(message: Message) {
      const event = eventOf(message);
      if (event?.type === "output") cursor = event.cursor;
      if (event?.type === "truncated") cursor = event.to;
      return event;
    },
    isOver: ({ event }: Message) => event === "exit",
    mayClose: !goesOn,
    outOfReach: () => outOfReach(process, cursor),
  };
  return follow(followed, options);
}

function eventOf({ event, id, data }: Message): LogEvent | undefined {
  switch (event) {
    case "output": {
      const { stream, data: base64 } = data as { stream: "stdout" | "stderr"; data: string };
      return { type: "output", stream, bytes: bytesOf(base64), cursor: Number(id) };
    }
    case "truncated":
      return { type: "truncated", from: Number(data.from), to: Number(data.to) };
    case "exit": {
      const { exitCode, signal, timedOut } = data as Extract<LogEvent, { type: "exit" }>;
      return { type: "exit", exitCode, signal, timedOut };
    }
    default:
      return undefined;
  }
}

function bytesOf(base64: string): Uint8Array {
  const text = atob(base64);
  const bytes = new Uint8Array(text.length);
  for (let at = 0; at < text.length; at += 1) bytes[at] = text.charCodeAt(at);
  return bytes;
}

function outOfReach(process: string, cursor: number): BerthError {
  const message = `The output of process ${process} cannot be reached any more.`;
  return new BerthError("operation_interrupted", message, {
    hint: "It may still run: follow its log again from this cursor on.",
    facts: { admitted: true, process, cursor },
  });
}
