/**
 * Waits for the response to one attempt and reads it: with limits on its time, on the time between two bytes, and on its
 * size.
 */
import type { BerthError } from "../../protocol/error-codes.ts";
import { isErrorBody, responseError, type SentRequest } from "./failure.ts";
import { anySignal, rejectOnAbort } from "./timing.ts";

/** The largest response is a command's output of 16 MiB with each byte escaped. */
const textBytesMax = 128 * 1024 * 1024;

const noContent = 204;

/** Limits one attempt of a request: until the response begins, then between its bytes, and in total. */
export class AttemptTimeout {
  /** Aborts when a limit is exceeded, and with the signal of the caller. */
  readonly signal: AbortSignal;
  readonly #expired = new AbortController();
  #idleTimer: ReturnType<typeof setTimeout> | undefined;
  readonly #totalTimer: ReturnType<typeof setTimeout> | undefined;
  #idleMs = 0;
  /** The limit that was exceeded, once `isExpired`. */
  exceededMs = 0;

  constructor(idleMs: number, totalMs: number, signal: AbortSignal | undefined) {
    this.signal = anySignal(signal, this.#expired.signal);
    this.restart(idleMs);
    if (Number.isFinite(totalMs)) {
      this.#totalTimer = setTimeout(() => this.#expire(Math.ceil(totalMs)), Math.max(0, totalMs));
    }
  }

  get isExpired(): boolean {
    return this.#expired.signal.aborted;
  }

  /** Call it for each sign of life: the idle time begins again, with the same limit unless one is given. */
  restart(idleMs = this.#idleMs): void {
    this.#idleMs = idleMs;
    clearTimeout(this.#idleTimer);
    this.#idleTimer = setTimeout(() => this.#expire(idleMs), idleMs);
  }

  #expire(limitMs: number): void {
    this.exceededMs = limitMs;
    this.#expired.abort();
  }

  /** A method and not `Symbol.dispose`, which today's browsers lack. */
  clear(): void {
    clearTimeout(this.#idleTimer);
    clearTimeout(this.#totalTimer);
  }
}

export async function readContent<Content>(
  response: Response,
  timeout: AttemptTimeout,
  request: SentRequest,
): Promise<Content> {
  const text = await readText(response, timeout);
  if (response.status === noContent) return undefined as Content;
  const body = parseJson(text);
  if (body === undefined) {
    // Over a service binding, or behind a proxy, a response that was cut off seems to end normally.
    if (response.headers.has("berth-request-id")) throw new Error("the response ended early");
    throw responseError(body, response.status, request);
  }
  // A slow call may send status 200 before it fails. Content that only contains an error, as an aborted commit does,
  // has no request id.
  if (isErrorBody(body) && typeof body.requestId === "string") {
    throw responseError(body, 500, request);
  }
  return body as Content;
}

export async function readError(
  response: Response,
  timeout: AttemptTimeout,
  request: SentRequest,
): Promise<BerthError> {
  return responseError(parseJson(await readText(response, timeout)), response.status, request);
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

async function readText({ body }: Response, timeout: AttemptTimeout): Promise<string> {
  if (body === null) return "";
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let text = "";
  try {
    for (let bytes = 0; ; ) {
      const { done, value } = await rejectOnAbort(reader.read(), timeout.signal);
      if (done) return text + decoder.decode();
      timeout.restart();
      bytes += value.byteLength;
      if (bytes > textBytesMax) throw new Error("the response is longer than any of Berth's");
      text += decoder.decode(value, { stream: true });
    }
  } finally {
    reader.cancel().catch(() => undefined);
  }
}
