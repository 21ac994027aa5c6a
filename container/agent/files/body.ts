/** Reads a body as a stream: bounded in bytes, with an idle time-out, ended by a signal. */
import { BerthError } from "../../../src/protocol/error-codes.ts";
import { limits } from "../../../src/protocol/limits.ts";

/**
 * Reads the next piece only when the previous one is processed. Throws if the body ends too early or is not as long as
 * announced. A caller that stops iterating cancels the body.
 */
export async function* bodyOf(request: Request, signal: AbortSignal): AsyncGenerator<Uint8Array> {
  const announced = announcedBytes(request);
  let bytes = 0;
  if (request.body !== null) {
    for await (const chunk of chunksOf(request.body, signal)) {
      bytes += chunk.length;
      if (bytes > limits.fileBytesMax) throw tooLarge();
      yield chunk;
    }
  }
  if (announced !== undefined && bytes !== announced) {
    throw endedTooEarly(`${bytes} of ${announced} bytes arrived`, { bytes });
  }
}

export function announcedBytes(request: Request): number | undefined {
  const text = request.headers.get("content-length");
  if (text === null) return undefined;
  const bytes = Number(text);
  if (bytes > limits.fileBytesMax) throw tooLarge();
  return bytes;
}

async function* chunksOf(
  body: ReadableStream<Uint8Array>,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  const reader = body.getReader();
  let stopped: unknown;
  const stop = (reason: unknown) => {
    stopped = reason;
    reader.cancel(reason).catch(() => {});
  };
  const onAbort = () => stop(signal.reason);
  signal.addEventListener("abort", onAbort);
  try {
    for (;;) {
      signal.throwIfAborted();
      const idle = setTimeout(() => stop(idleTimeout()), limits.fileIdleMs);
      const { done, value } = await reader.read().catch((error) => {
        throw stopped ?? endedTooEarly(error instanceof Error ? error.message : String(error));
      });
      clearTimeout(idle);
      if (stopped !== undefined) throw stopped;
      if (done) return;
      yield value;
    }
  } finally {
    signal.removeEventListener("abort", onAbort);
    reader.cancel().catch(() => {});
  }
}

function tooLarge(): BerthError {
  return new BerthError("too_large", `A file has at most ${limits.fileBytesMax} bytes.`, {
    facts: { limit: limits.fileBytesMax },
  });
}

function idleTimeout(): BerthError {
  const message = `No byte of the body arrived for ${limits.fileIdleMs} ms.`;
  return new BerthError("body_timeout", message, { hint: "Nothing was written; send it again." });
}

function endedTooEarly(what: string, facts: { bytes?: number } = {}): BerthError {
  return new BerthError("bad_request", `The body ended too early: ${what}.`, {
    facts: { field: "body", ...facts },
  });
}

/**
 * Drains the body of a refused call, so that a client that writes all of it before it reads gets the error instead of a
 * broken connection. Bounded in bytes and time; nothing is stored.
 */
export async function drainBody(request: Request): Promise<void> {
  if (request.body === null || request.bodyUsed || request.body.locked) return;
  const reader = request.body.getReader();
  const cancel = () => reader.cancel().catch(() => {});
  const timer = setTimeout(cancel, limits.bodyReadMs);
  try {
    for (let bytes = 0; bytes < limits.refusedBodyBytesMax; ) {
      const { done, value } = await reader.read();
      if (done) return;
      bytes += value.length;
    }
  } catch {
    // The sender disconnected.
  } finally {
    clearTimeout(timer);
    cancel();
  }
}
