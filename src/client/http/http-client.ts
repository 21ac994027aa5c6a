/**
 * Owns sending a call: address, key, time limits, giving up, sending again.
 * Does not own which calls there are, when one may be sent again (retry.ts), nor reading the answer (whole.ts).
 */
import { BerthError } from "../../protocol/error-codes.ts";
import { Silence } from "./attempt-timeout.ts";
import { connectionFailure, noAnswer, type Sent } from "./failure.ts";
import { drawn } from "./random-id.ts";
import { type Call, type CallOptions, type Link, queryText } from "./request.ts";
import { isRefusedForNow, type RetryPolicy, retryAfterMs, retryDelay } from "./retry.ts";
import { isReplayable, type Outgoing, outgoing } from "./upload.ts";
import { type Ears, refusal, Told, unlessAborted, wholeAnswer } from "./whole-body.ts";

export type Fetch = (url: string, init: RequestInit) => Promise<Response>;

/** Time and chance, for those who test with them. */
export type Clock = {
  now(): number;
  /** From 0 to 1. */
  chance(): number;
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
};

export type Door = {
  url: string;
  key: () => string | Promise<string>;
  fetch: Fetch;
  retry: RetryPolicy;
  clock: Clock;
};

/** Waking a container, waiting for a lease and the headers of a slow answer have room in it. */
const beginsWithinMs = 180_000;
/** An answer under way brings a byte a second. */
const silenceMs = 60_000;

type Read<Content> = (response: Response, ears: Ears) => Promise<Content>;
type Outcome<Content> = { content: Content } | { error: unknown; retryAfterMs: number };

export function makeLink(door: Door, options: CallOptions = {}): Link {
  return {
    signal: options.signal,
    ask: <Content>(call: Call) => send<Content>(door, call, options, wholeAnswer),
    open: (call) => send(door, call, options, async (response) => response),
    with: (more) => makeLink(door, both(options, more)),
  };
}

function both(one: CallOptions, other: CallOptions): CallOptions {
  const signals = [one.signal, other.signal].filter((signal) => signal !== undefined);
  const signal = signals.length > 1 ? AbortSignal.any(signals) : signals[0];
  return { signal, answerWithinMs: other.answerWithinMs ?? one.answerWithinMs };
}

async function send<Content>(
  door: Door,
  call: Call,
  options: CallOptions,
  read: Read<Content>,
): Promise<Content> {
  const { clock } = door;
  const began = clock.now();
  const { signal, answerWithinMs = Number.POSITIVE_INFINITY } = options;
  /** That it may have run, once an answer was lost: later ones that nothing was done are of their own attempt. */
  let unknown: unknown;
  for (let sent = 1; ; sent++) {
    signal?.throwIfAborted();
    const leftMs = answerWithinMs - (clock.now() - began);
    const outcome = await once(door, call, { signal, leftMs }, read);
    if ("content" in outcome) return outcome.content;
    signal?.throwIfAborted();
    const error = outcome.error as BerthError;
    if (error.code === "operation_interrupted") unknown = error;
    const failed = {
      error,
      isRepeatable: call.method === "GET" || call.isRepeatable === true,
      sent,
      tookMs: clock.now() - began,
      retryAfterMs: outcome.retryAfterMs,
    };
    const delay = isReplayable(call.upload)
      ? retryDelay(door.retry, failed, clock.chance())
      : undefined;
    if (delay === undefined || failed.tookMs + delay >= answerWithinMs) {
      throw isRefusedForNow(error) ? (unknown ?? error) : error;
    }
    await clock.sleep(delay, signal);
  }
}

type Bounds = { signal: AbortSignal | undefined; leftMs: number };

async function once<Content>(
  door: Door,
  call: Call,
  bounds: Bounds,
  read: Read<Content>,
): Promise<Outcome<Content>> {
  // Drawn here, so that a call whose answer never came can be found in the log too.
  const requestId = drawn(12);
  const about: Sent = { requestId, url: door.url, reads: call.method === "GET" };
  const silence = new Silence(call.beginsWithinMs ?? beginsWithinMs, bounds.leftMs);
  const ears = { silence, signal: either(silence.signal, bounds.signal) };
  let body: Outgoing | undefined;
  let isSent = false;
  try {
    const headers = await unlessAborted(headersOf(door, call, requestId), ears.signal);
    if (call.upload !== undefined) {
      body = await unlessAborted(outgoing(call.upload), ears.signal);
    }
    const init = initOf(call, headers, body, ears.signal);
    silence.heard();
    isSent = true;
    const asked = door.fetch(`${door.url}${call.path}${queryText(call.query)}`, init);
    const response = await unlessAborted(asked, ears.signal);
    silence.heard(silenceMs);
    if (response.ok) {
      const content = await read(response, ears);
      body?.arrived();
      return { content };
    }
    const waitMs = retryAfterMs(response.headers.get("retry-after"), Date.now());
    return { error: await refusal(response, ears, about), retryAfterMs: waitMs };
  } catch (thrown) {
    // What the key's own function or the bytes' own source throws is its word, and not ours.
    if (!isSent) throw silence.isOver ? notReady(silence.limitMs, requestId) : thrown;
    return { error: failed(thrown, silence, body?.broken(), about), retryAfterMs: 0 };
  } finally {
    silence.end();
    body?.end();
  }
}

function initOf(
  call: Call,
  headers: Record<string, string>,
  body: Outgoing | undefined,
  signal: AbortSignal,
): RequestInit {
  const init: RequestInit & { duplex?: "half" } = { method: call.method, headers, signal };
  if (body?.length !== undefined) headers["content-length"] = String(body.length);
  if (body !== undefined) init.body = body.body;
  else if (call.body !== undefined) init.body = JSON.stringify(call.body);
  // Node wants to be told that a stream is sent before the answer comes.
  if (body?.isStream) init.duplex = "half";
  return init;
}

function notReady(withinMs: number, requestId: string): BerthError {
  const message = `The call was not sent: its key or its bytes were not there after ${withinMs} ms.`;
  return new BerthError("unavailable", message, {
    requestId,
    hint: "Look at the `key` function given to connect(), and at what the call is to send.",
  });
}

function either(one: AbortSignal, other: AbortSignal | undefined): AbortSignal {
  return other === undefined ? one : AbortSignal.any([one, other]);
}

function failed(thrown: unknown, silence: Silence, broken: unknown, about: Sent): unknown {
  if (thrown instanceof Told) return thrown.failure(about);
  if (broken !== undefined) return broken;
  if (silence.isOver) return noAnswer(about, silence.limitMs);
  return connectionFailure(thrown, about);
}

async function headersOf(
  door: Door,
  call: Call,
  requestId: string,
): Promise<Record<string, string>> {
  const headers: Record<string, string> = {
    authorization: `Bearer ${await door.key()}`,
    "berth-request-id": requestId,
  };
  if (call.upload !== undefined) headers["content-type"] = call.upload.type;
  else if (call.body !== undefined) headers["content-type"] = "application/json";
  for (const [name, value] of Object.entries(call.headers ?? {})) {
    if (value !== undefined) headers[name] = value;
  }
  return headers;
}
