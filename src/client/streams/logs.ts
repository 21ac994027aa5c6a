/**
 * Follows the output of a process until its exit: in order, without loss or repetition over lost connections. See
 * stream.ts for reading and reconnecting.
 */
import { randomId } from "../http/random-id.ts";
import type { SandboxCalls } from "../verbs.ts";
import { connectionLost, follow, type ServerEvent, type StreamOptions } from "./stream.ts";

/**
 * What `process.logs` yields.
 *
 * @example
 * ```ts
 * const build = await sandbox.processes.start("npm test");
 * for await (const event of build.logs()) {
 *   if (event.type === "output") process.stdout.write(event.bytes);
 *   if (event.type === "exit") console.log(`exit code ${event.exitCode}`);
 * }
 * ```
 */
export type LogEvent =
  /** `cursor` is the position after these bytes: pass it as `after` to continue from here. */
  | { type: "output"; stream: "stdout" | "stderr"; bytes: Uint8Array; cursor: number }
  /** The output between these two cursors is no longer stored. */
  | { type: "truncated"; from: number; to: number }
  /** The last event. */
  | {
      type: "exit";
      exitCode: number | null;
      signal: string | null;
      timedOut: boolean;
      /** Processes that it left running, and that were ended. Missing: none. */
      leftovers?: number;
    };

/** Options of `process.logs`. */
export type FollowOptions = StreamOptions & {
  /** The cursor of an earlier event. Default: 0, the beginning of the output. */
  after?: number | undefined;
  /** Only this stream. Default: both. */
  stream?: "stdout" | "stderr" | undefined;
  /** false: ends after the output that is there, with `exit` if the process has exited. Default: true. */
  follow?: boolean | undefined;
};

export function followLogs(
  sandbox: Pick<SandboxCalls, "processLogs">,
  process: string,
  { after = 0, stream, follow: isFollowing = true, ...options }: FollowOptions = {},
): AsyncGenerator<LogEvent, void, undefined> {
  let cursor = after;
  // Every reconnect names the same reader, so that the sandbox does not wait for the lost connection.
  const reader = randomId(8);
  const logStream = {
    open(signal: AbortSignal) {
      const part = stream === undefined ? {} : { stream };
      const query = { after: cursor, follow: isFollowing, reader, ...part, signal };
      return sandbox.processLogs(process, query);
    },
    read(message: ServerEvent) {
      const event = toLogEvent(message);
      if (event?.type === "output") cursor = event.cursor;
      if (event?.type === "truncated") cursor = event.to;
      return event;
    },
    isOver: ({ event }: ServerEvent) => event === "exit",
    mayClose: !isFollowing,
    lostError: () =>
      connectionLost("operation_interrupted", `the output of process ${process}`, {
        hint: "It may still be running: follow its log again with `after` set to `cursor`.",
        facts: { admitted: true, process, cursor },
      }),
  };
  return follow(logStream, options);
}

function toLogEvent({ event, id, data }: ServerEvent): LogEvent | undefined {
  switch (event) {
    case "output": {
      const { stream, data: base64 } = data as { stream: "stdout" | "stderr"; data: string };
      return { type: "output", stream, bytes: decodeBase64(base64), cursor: Number(id) };
    }
    case "truncated":
      return { type: "truncated", from: Number(data.from), to: Number(data.to) };
    case "exit": {
      const { exitCode, signal, timedOut, leftovers } = data as Extract<LogEvent, { type: "exit" }>;
      const left = leftovers === undefined ? {} : { leftovers };
      return { type: "exit", exitCode, signal, timedOut, ...left };
    }
    default:
      return undefined;
  }
}

function decodeBase64(base64: string): Uint8Array {
  const text = atob(base64);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i += 1) bytes[i] = text.charCodeAt(i);
  return bytes;
}
