/**
 * Owns following server-sent events over cut connections: each time from where its reader has got to, until the last one
 * or until nobody can be reached any more. Does not own what they mean. A reader who is slow slows the connection.
 */
import { BerthError, type ErrorCode, errors } from "../../protocol/error-codes.ts";
import { isPassing, pause } from "../terminal/sockets.ts";

export type StreamOptions = {
  signal?: AbortSignal;
  /** How long to try to come back after a cut; then it is `operation_interrupted`. */
  reconnectMs?: number;
  /** Told when a connection broke, and when it is there again. */
  onConnection?: (state: "lost" | "back") => void;
};

export type Message = { event: string; id: string | undefined; data: Record<string, unknown> };

export type Followed<Event> = {
  /** From where `read` has got to. */
  open(signal: AbortSignal): Promise<AsyncIterable<Uint8Array>>;
  /** What it means; undefined: nothing to whoever follows. */
  read(message: Message): Event | undefined;
  /** Whether it was the last one: looked at once it is told. */
  isOver(message: Message): boolean;
  /** One that is closed in good order has told all that there was. */
  mayClose?: boolean;
  outOfReach(): BerthError;
};

const reconnectDefaultMs = 60_000;
const triesAgainAfterMs = 200;
const triesAgainMaxMs = 5_000;
/** The server says something at least every 10 s. */
const silenceMaxMs = 30_000;

export async function* follow<Event>(
  followed: Followed<Event>,
  options: StreamOptions,
): AsyncGenerator<Event, void, undefined> {
  const { signal, reconnectMs = reconnectDefaultMs, onConnection } = options;
  let failures = 0;
  let lostAt: number | undefined;
  for (;;) {
    signal?.throwIfAborted();
    let told: BerthError | undefined;
    const connection = new AbortController();
    const cut = () => connection.abort(signal?.reason);
    signal?.addEventListener("abort", cut);
    try {
      for await (const message of messagesOf(await followed.open(connection.signal))) {
        if (lostAt !== undefined) onConnection?.("back");
        lostAt = undefined;
        failures = 0;
        if (message === "alive") continue;
        if (message.event === "error") {
          told = errorOf(message);
          break;
        }
        const event = followed.read(message);
        if (event !== undefined) yield event;
        if (followed.isOver(message)) return;
      }
      if (followed.mayClose === true && told === undefined) return;
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
    if (now - lostAt > reconnectMs) throw followed.outOfReach();
    await pause(Math.min(triesAgainMaxMs, triesAgainAfterMs * 2 ** failures), signal);
    failures += 1;
  }
}

/** Ends where the connection does, whether all was told or not. */
export async function* messagesOf(
  bytes: AsyncIterable<Uint8Array>,
): AsyncGenerator<Message | "alive", void, undefined> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const piece of watched(bytes)) {
    rest += decoder.decode(piece, { stream: true });
    // Only a whole message counts: a part of one is told again.
    const messages = rest.split("\n\n");
    rest = messages.pop() ?? "";
    yield "alive";
    for (const text of messages) {
      const message = messageOf(text);
      if (message !== undefined) yield message;
    }
  }
}

/** What the server tells as the end of a stream that had begun. */
export function errorOf({ data }: Message): BerthError {
  const body = (data.error ?? data) as { code: string; message: string; hint?: string };
  const { code, message, hint, ...rest } = body;
  const { retryable: _retryable, ...facts } = rest as Record<string, string>;
  const known = Object.hasOwn(errors, code) ? (code as ErrorCode) : "internal";
  return new BerthError(known, message, { ...(hint === undefined ? {} : { hint }), facts });
}

function messageOf(text: string): Message | undefined {
  const fields = new Map<string, string>();
  for (const line of text.split("\n")) {
    const colon = line.indexOf(":");
    if (colon > 0) fields.set(line.slice(0, colon), line.slice(colon + 1).trimStart());
  }
  const data = fields.get("data");
  if (data === undefined) return undefined;
  return { event: fields.get("event") ?? "", id: fields.get("id"), data: JSON.parse(data) };
}

/** Gives up a connection that says nothing for too long. */
async function* watched(
  bytes: AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array, void, undefined> {
  const pieces = bytes[Symbol.asyncIterator]();
  try {
    for (;;) {
      const over = new AbortController();
      const next = pieces.next();
      next.catch(() => {});
      const silence = pause(silenceMaxMs, over.signal);
      const first = await Promise.race([next, silence]).finally(() => over.abort());
      if (first === undefined) {
        throw new BerthError("unavailable", `Nothing was heard for ${silenceMaxMs} ms.`);
      }
      if (first.done) return;
      yield first.value;
    }
  } finally {
    // Also where its reader went away first, who would wait for what never comes.
    void pieces.return?.().catch(() => undefined);
  }
}
