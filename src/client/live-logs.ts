/**
 * Owns following the output of a process: in order, without loss or repeat over cut connections, until its exit.
 * Does not own how the stream is fetched, nor what becomes of the bytes. A reader who is slow slows the connection.
 */
import type { SandboxApi } from "../protocol/api.ts";
import { BerthError, type ErrorCode, errors } from "../protocol/error-codes.ts";
import { isPassing, pause } from "./sockets.ts";

export type LogEvent =
  | { type: "output"; stream: "stdout" | "stderr"; bytes: Uint8Array; cursor: number }
  /** Output between the two cursors is no longer kept. */
  | { type: "truncated"; from: number; to: number }
  /** The last one. */
  | { type: "exit"; exitCode: number | null; signal: string | null; timedOut: boolean };

export type FollowOptions = {
  /** A cursor of an earlier event; 0 is the beginning. */
  after?: number;
  stream?: "stdout" | "stderr";
  /** false: only what is there already; `exit` is told where it has exited. */
  follow?: boolean;
  signal?: AbortSignal;
  /** How long to try to come back after a cut; then it is `operation_interrupted`. */
  reconnectMs?: number;
  /** Told when a connection broke, and when it is there again. */
  onConnection?: (state: "lost" | "back") => void;
};

type Source = {
  processLogs(
    process: string,
    query: Parameters<SandboxApi["processLogs"]>[1] & { signal: AbortSignal },
  ): Promise<AsyncIterable<Uint8Array>>;
};

const reconnectDefaultMs = 60_000;
const triesAgainAfterMs = 200;
const triesAgainMaxMs = 5_000;
/** The server says something at least every 10 s. */
const silenceMaxMs = 30_000;

export async function* followLogs(
  sandbox: Source,
  process: string,
  options: FollowOptions = {},
): AsyncGenerator<LogEvent, void, undefined> {
  const { stream, follow = true, signal, reconnectMs = reconnectDefaultMs, onConnection } = options;
  let cursor = options.after ?? 0;
  let failures = 0;
  let lostAt: number | undefined;
  for (;;) {
    signal?.throwIfAborted();
    let told: BerthError | undefined;
    const connection = new AbortController();
    const cut = () => connection.abort(signal?.reason);
    signal?.addEventListener("abort", cut);
    try {
      const query = { after: cursor, follow, ...(stream === undefined ? {} : { stream }) };
      const bytes = await sandbox.processLogs(process, { ...query, signal: connection.signal });
      for await (const event of eventsOf(bytes)) {
        if (lostAt !== undefined) onConnection?.("back");
        lostAt = undefined;
        failures = 0;
        if (event === "alive") continue;
        if (event instanceof BerthError) {
          told = event;
          break;
        }
        if (event.type === "output") cursor = event.cursor;
        if (event.type === "truncated") cursor = event.to;
        yield event;
        if (event.type === "exit") return;
      }
      // It was closed in good order: that was all.
      if (!follow && told === undefined) return;
    } catch (error) {
      signal?.throwIfAborted();
      if (error instanceof BerthError && !isPassing(error)) throw error;
    } finally {
      signal?.removeEventListener("abort", cut);
      // However it ended: nothing of it stays open.
      connection.abort();
    }
    signal?.throwIfAborted();
    if (told !== undefined) throw told;
    const now = performance.now();
    if (lostAt === undefined) onConnection?.("lost");
    lostAt ??= now;
    if (now - lostAt > reconnectMs) throw outOfReach(process, cursor);
    await pause(Math.min(triesAgainMaxMs, triesAgainAfterMs * 2 ** failures), signal);
    failures += 1;
  }
}

/** Ends where the connection does, whether all was told or not. */
async function* eventsOf(
  bytes: AsyncIterable<Uint8Array>,
): AsyncGenerator<LogEvent | BerthError | "alive", void, undefined> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const piece of watched(bytes)) {
    rest += decoder.decode(piece, { stream: true });
    // Only a whole message moves the cursor: a part of one is told again.
    const messages = rest.split("\n\n");
    rest = messages.pop() ?? "";
    yield "alive";
    for (const message of messages) {
      const event = eventOf(message);
      if (event !== undefined) yield event;
    }
  }
}

function eventOf(message: string): LogEvent | BerthError | undefined {
  const fields = new Map<string, string>();
  for (const line of message.split("\n")) {
    const colon = line.indexOf(":");
    if (colon > 0) fields.set(line.slice(0, colon), line.slice(colon + 1).trimStart());
  }
  const data = fields.get("data");
  if (data === undefined) return undefined;
  const told = JSON.parse(data);
  switch (fields.get("event")) {
    case "output":
      return {
        ...{ type: "output", stream: told.stream, bytes: bytesOf(told.data) },
        cursor: Number(fields.get("id")),
      };
    case "truncated":
      return { type: "truncated", from: Number(told.from), to: Number(told.to) };
    case "exit": {
      const { exitCode, signal, timedOut } = told;
      return { type: "exit", exitCode, signal, timedOut };
    }
    case "error": {
      const { code, message: words, hint, retryable: _retryable, ...facts } = told.error ?? told;
      const known = Object.hasOwn(errors, code) ? (code as ErrorCode) : "internal";
      return new BerthError(known, words, { ...(hint === undefined ? {} : { hint }), facts });
    }
    default:
      return undefined;
  }
}

/** Gives up a connection that says nothing for too long. */
async function* watched(
  bytes: AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array, void, undefined> {
  const pieces = bytes[Symbol.asyncIterator]();
  for (;;) {
    const over = new AbortController();
    const next = pieces.next();
    next.catch(() => {});
    const silence = pause(silenceMaxMs, over.signal);
    const first = await Promise.race([next, silence]).finally(() => over.abort());
    if (first === undefined) throw new Error("nothing was heard for too long");
    if (first.done) return;
    yield first.value;
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
