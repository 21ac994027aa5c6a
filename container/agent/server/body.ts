/**
 * Owns reading a body, as JSON or as bytes: bounded in bytes and in time.
 * Does not own its meaning.
 */
import { BerthError } from "../../../src/protocol/error-codes.ts";
import { limits } from "../../../src/protocol/limits.ts";

export async function readJson(
  request: Request,
  bytesMax: number = limits.bodyBytesMax,
): Promise<unknown> {
  const text = await readText(request, bytesMax);
  try {
    return JSON.parse(text);
  } catch {
    throw new BerthError("bad_json", "the body is not JSON");
  }
}

const known = new WeakMap<Request, string>();

/** A request whose body came with it, whole. */
export function withBody(request: Request, body: string): Request {
  known.set(request, body);
  return request;
}

async function readText(request: Request, bytesMax: number): Promise<string> {
  const text = known.get(request);
  if (text !== undefined) {
    if (Buffer.byteLength(text) > bytesMax) throw tooLarge(bytesMax);
    return text;
  }
  return (await readBytes(request, bytesMax)).toString("utf8");
}

export async function readBytes(request: Request, bytesMax: number): Promise<Buffer> {
  const announced = Number(request.headers.get("content-length") ?? Number.NaN);
  if (announced > bytesMax) throw tooLarge(bytesMax);
  if (request.body === null) return Buffer.alloc(0);
  const reader = request.body.getReader();
  const limit = setTimeout(() => {
    reader.cancel(new BerthError("body_timeout", "")).catch(() => {});
  }, limits.bodyReadMs);
  const started = performance.now();
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      bytes += value.length;
      if (bytes > bytesMax) throw tooLarge(bytesMax);
      chunks.push(value);
    }
  } finally {
    clearTimeout(limit);
  }
  if (performance.now() - started >= limits.bodyReadMs) {
    throw new BerthError("body_timeout", `the body did not arrive in ${limits.bodyReadMs} ms`);
  }
  return Buffer.concat(chunks);
}

function tooLarge(limit: number): BerthError {
  return new BerthError("too_large", `the body is larger than ${limit} bytes`, {
    facts: { limit },
  });
}
