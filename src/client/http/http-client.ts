/**
 * Sends requests: address, key, time limits, cancellation and retries. See retry.ts for what may be sent again.
 */
import { BerthError } from "../../protocol/error-codes.ts";
import { connectionFailure, responseTimeout, type SentRequest } from "./failure.ts";
import { randomId } from "./random-id.ts";
import { type CallOptions, encodeQuery, type HttpClient, type HttpRequest } from "./request.ts";
import { AttemptTimeout, readContent, readError } from "./response.ts";
import { isRefusal, parseRetryAfterMs, type RetryPolicy, retryDelay } from "./retry.ts";
import { anySignal, rejectOnAbort } from "./timing.ts";
import { isReplayable, toUploadBody, type UploadBody } from "./upload.ts";

/** As the platform's `fetch`: what `connect` takes to send requests with. */
export type Fetch = (url: string, init: RequestInit) => Promise<Response>;

/** Time and randomness, replaceable for tests. */
export type Clock = {
  /** Milliseconds since some fixed moment. */
  now(): number;
  /** A random number from 0 to 1. */
  chance(): number;
  /** Resolves after `ms`, or at once when the signal aborts. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
};

/** `ConnectOptions` with all defaults filled in. */
export type ClientConfig = {
  url: string;
  key: () => string | Promise<string>;
  fetch: Fetch;
  retry: RetryPolicy;
  clock: Clock;
};

/** Long enough to wake a container, to wait for a lease, and for the headers of a slow response. */
const defaultResponseTimeoutMs = 180_000;
/** A response that has begun sends at least a byte a second. */
const idleTimeoutMs = 60_000;

type ReadResponse<Content> = (
  response: Response,
  timeout: AttemptTimeout,
  request: SentRequest,
) => Promise<Content>;
type Outcome<Content> = { content: Content } | { error: unknown; retryAfterMs: number };

export function createHttpClient(config: ClientConfig, options: CallOptions = {}): HttpClient {
  return {
    signal: options.signal,
    request: <Content>(call: HttpRequest) => send<Content>(config, call, options, readContent),
    openStream: (call) => send(config, call, options, async (response) => response),
    withOnly: (only) => createHttpClient(config, only),
    with: (more) =>
      createHttpClient(config, {
        signal: anySignal(options.signal, more.signal),
        answerWithinMs: more.answerWithinMs ?? options.answerWithinMs,
        retries: more.retries ?? options.retries,
      }),
  };
}

async function send<Content>(
  config: ClientConfig,
  call: HttpRequest,
  options: CallOptions,
  read: ReadResponse<Content>,
): Promise<Content> {
  const { clock } = config;
  const began = clock.now();
  const { signal, answerWithinMs = Number.POSITIVE_INFINITY } = options;
  const policy = { ...config.retry, retries: options.retries ?? config.retry.retries };
  /** The first attempt whose response was lost: it may have run, whatever later attempts say. */
  let unknown: unknown;
  for (let sent = 1; ; sent++) {
    signal?.throwIfAborted();
    const leftMs = answerWithinMs - (clock.now() - began);
    const responseMs = call.responseTimeoutMs ?? defaultResponseTimeoutMs;
    const timeout = new AttemptTimeout(responseMs, leftMs, signal);
    const outcome = await sendOnce(config, call, timeout, read);
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
      ? retryDelay(policy, failed, clock.chance())
      : undefined;
    if (delay === undefined || failed.tookMs + delay >= answerWithinMs) {
      throw isRefusal(error) ? (unknown ?? error) : error;
    }
    await clock.sleep(delay, signal);
  }
}

async function sendOnce<Content>(
  config: ClientConfig,
  call: HttpRequest,
  timeout: AttemptTimeout,
  read: ReadResponse<Content>,
): Promise<Outcome<Content>> {
  // Generated here, so that a call without a response can be found in the log too.
  const requestId = randomId(12);
  const sent: SentRequest = { requestId, url: config.url, reads: call.method === "GET" };
  const { signal } = timeout;
  let body: UploadBody | undefined;
  let isSent = false;
  try {
    const headers = await rejectOnAbort(toHeaders(config, call, requestId), signal);
    if (call.upload !== undefined) {
      body = await rejectOnAbort(toUploadBody(call.upload), signal);
    }
    const init = toRequestInit(call, headers, body, signal);
    timeout.restart();
    isSent = true;
    const fetched = config.fetch(`${config.url}${call.path}${encodeQuery(call.query)}`, init);
    const response = await rejectOnAbort(fetched, signal);
    timeout.restart(idleTimeoutMs);
    if (response.ok) {
      const content = await read(response, timeout, sent);
      body?.arrived?.();
      return { content };
    }
    const waitMs = parseRetryAfterMs(response.headers.get("retry-after"), Date.now());
    return { error: await readError(response, timeout, sent), retryAfterMs: waitMs };
  } catch (thrown) {
    // An error from the `key` function or from the source of the bytes goes to the caller as it is.
    if (!isSent) throw timeout.isExpired ? notSent(timeout.exceededMs, requestId) : thrown;
    return { error: toFailure(thrown, timeout, body?.broken?.(), sent), retryAfterMs: 0 };
  } finally {
    timeout.clear();
    body?.end?.();
  }
}

function toRequestInit(
  call: HttpRequest,
  headers: Record<string, string>,
  body: UploadBody | undefined,
  signal: AbortSignal,
): RequestInit {
  const init: RequestInit & { duplex?: "half" } = { method: call.method, headers, signal };
  if (body?.length !== undefined) headers["content-length"] = String(body.length);
  if (body !== undefined) init.body = body.body;
  else if (call.body !== undefined) init.body = JSON.stringify(call.body);
  // Node requires it for a body that is still being sent when the response comes.
  if (body?.isStream) init.duplex = "half";
  return init;
}

function notSent(withinMs: number, requestId: string): BerthError {
  const message = `The call was not sent: its key or its content was not available after ${withinMs} ms.`;
  return new BerthError("unavailable", message, {
    requestId,
    hint: "Check the `key` function given to connect() and the content of the call.",
  });
}

function toFailure(
  thrown: unknown,
  timeout: AttemptTimeout,
  broken: unknown,
  request: SentRequest,
): unknown {
  if (thrown instanceof BerthError) return thrown;
  if (broken !== undefined) return broken;
  if (timeout.isExpired) return responseTimeout(request, timeout.exceededMs);
  return connectionFailure(thrown, request);
}

async function toHeaders(
  config: ClientConfig,
  call: HttpRequest,
  requestId: string,
): Promise<Record<string, string>> {
  const headers: Record<string, string> = {
    authorization: `Bearer ${await config.key()}`,
    "berth-request-id": requestId,
  };
  if (call.upload !== undefined) headers["content-type"] = call.upload.type;
  else if (call.body !== undefined) headers["content-type"] = "application/json";
  for (const [name, value] of Object.entries(call.headers ?? {})) {
    if (value !== undefined) headers[name] = value;
  }
  return headers;
}
