/**
 * Follows server-sent events over lost connections: continues where the reader has got to, until the last event or
 * until reconnecting takes too long. A slow reader slows the connection.
 */
import { BerthError, type ErrorCode } from "../../protocol/error-codes.ts";
import { type SentError, toBerthError } from "../http/failure.ts";
import { isTransient } from "../http/retry.ts";
import { anySignal, backOffMs, sleep } from "../http/timing.ts";

/** Options of every method that follows a stream. */
export type StreamOptions = {
  /** Ends the iteration: it throws the signal's reason. */
  signal?: AbortSignal | undefined;
  /** How long to try to reconnect after a lost connection, in ms; then it throws. Default: 60,000. */
  reconnectMs?: number | undefined;
  /** Called when the connection is lost, and when it is back. */
  onConnection?: ((state: "lost" | "back") => void) | undefined;
};

/** Options whose fields may be given as undefined. */
type Given<Options> = { [Name in keyof Options]: Options[Name] | undefined };

export type ServerEvent = { event: string; id: string | undefined; data: Record<string, unknown> };

type FollowedStream<Event> = {
  /** Opens the stream after the last event that `read` was given. */
  open(signal: AbortSignal): Promise<AsyncIterable<Uint8Array>>;
  /** What the reader gets for this event; undefined: nothing. */
  read(message: ServerEvent): Event | undefined;
  /** Whether it was the last event; called after `read`. */
  isOver(message: ServerEvent): boolean;
  /** true: a connection that ends normally ends the stream. */
  mayClose?: boolean;
  /** What to throw when reconnecting has taken too long. */
  lostError(): BerthError;
};

/** What to throw when reconnecting has taken too long; `what`: that to which the connection was. */
export function connectionLost(
  code: ErrorCode,
  what: string,
  options: ConstructorParameters<typeof BerthError>[2] = {},
): BerthError {
  const message = `The connection to ${what} was lost and could not be made again.`;
  return new BerthError(code, message, options);
}

const reconnectDefaultMs = 60_000;

export async function* follow<Event>(
  stream: FollowedStream<Event>,
  options: Given<StreamOptions>,
): AsyncGenerator<Event, void, undefined> {
  const { signal, reconnectMs = reconnectDefaultMs, onConnection } = options;
  let failures = 0;
  let lostAt: number | undefined;
  for (;;) {
    signal?.throwIfAborted();
    let sentError: BerthError | undefined;
    const connection = new AbortController();
    try {
      const bytes = await stream.open(anySignal(signal, connection.signal));
      for await (const message of readServerEvents(bytes)) {
        if (lostAt !== undefined) onConnection?.("back");
        lostAt = undefined;
        failures = 0;
        if (message === "alive") continue;
        if (message.event === "error") {
          sentError = toStreamError(message);
          break;
        }
        const event = stream.read(message);
        if (event !== undefined) yield event;
        if (stream.isOver(message)) return;
      }
      if (stream.mayClose === true && sentError === undefined) return;
    } catch (error) {
      signal?.throwIfAborted();
      if (error instanceof BerthError && !isTransient(error)) throw error;
    } finally {
      // Closes the connection however the loop ended.
      connection.abort();
    }
    signal?.throwIfAborted();
    if (sentError !== undefined) throw sentError;
    const now = performance.now();
    if (lostAt === undefined) onConnection?.("lost");
    lostAt ??= now;
    if (now - lostAt > reconnectMs) throw stream.lostError();
    failures += 1;
    await sleep(backOffMs(failures), signal);
  }
}

/** Ends when the connection does, whether complete or cut. `alive` marks each arrival of bytes. */
export async function* readServerEvents(
  bytes: AsyncIterable<Uint8Array>,
): AsyncGenerator<ServerEvent | "alive", void, undefined> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const chunk of bytes) {
    rest += decoder.decode(chunk, { stream: true });
    // Only a complete event counts: the server sends a partial one again.
    const messages = rest.split("\n\n");
    rest = messages.pop() ?? "";
    yield "alive";
    for (const text of messages) {
      const message = parseServerEvent(text);
      if (message !== undefined) yield message;
    }
  }
}

/** The error with which the server ends a stream that had begun. */
export function toStreamError({ data }: ServerEvent): BerthError {
  return toBerthError((data.error ?? data) as SentError, "internal");
}

function parseServerEvent(text: string): ServerEvent | undefined {
  const fields = new Map<string, string>();
  for (const line of text.split("\n")) {
    const colon = line.indexOf(":");
    if (colon > 0) fields.set(line.slice(0, colon), line.slice(colon + 1).trimStart());
  }
  const data = fields.get("data");
  if (data === undefined) return undefined;
  return { event: fields.get("event") ?? "", id: fields.get("id"), data: JSON.parse(data) };
}
