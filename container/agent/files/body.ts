/**
 * Owns taking a body in as a stream: bounded in bytes, given up after a silence, ended by a signal.
 * Does not own where the bytes go: the next piece is asked for when the one before is done with.
 */
import { BerthError } from "../../../src/protocol/error-codes.ts";
import { limits } from "../../../src/protocol/limits.ts";

/** A body that breaks off, or is not as long as announced, throws. Whoever stops asking lets it go. */
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
    throw new BerthError("bad_request", `the body broke off: ${bytes} of ${announced} bytes came`, {
      facts: { field: "body", bytes },
    });
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
  const stop = (why: unknown) => {
    stopped = why;
    reader.cancel(why).catch(() => {});
  };
  const onAbort = () => stop(signal.reason);
  signal.addEventListener("abort", onAbort);
  try {
    for (;;) {
      signal.throwIfAborted();
      const idle = setTimeout(() => stop(silent()), limits.fileIdleMs);
      const { done, value } = await reader.read().catch((error) => {
        throw stopped ?? brokenOff(error);
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
  return new BerthError("too_large", `a file has at most ${limits.fileBytesMax} bytes`, {
    facts: { limit: limits.fileBytesMax },
  });
}

function silent(): BerthError {
  return new BerthError("body_timeout", `the body brought nothing for ${limits.fileIdleMs} ms`, {
    hint: "nothing was written; send it again",
  });
}

function brokenOff(error: unknown): BerthError {
  const why = error instanceof Error ? error.message : String(error);
  return new BerthError("bad_request", `the body broke off (${why})`, { facts: { field: "body" } });
}
