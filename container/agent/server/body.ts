/** Reads the body of a request, as JSON or as bytes, bounded in bytes and in time. */
import { BerthError } from "../../../src/protocol/error-codes.ts";
import { limits } from "../../../src/protocol/limits.ts";

/** The object has checked the call against its schema: the agent takes it as a `Call` without a second check. */
export async function readJson<Call>(
  request: Request,
  bytesMax: number = limits.bodyBytesMax,
): Promise<Call> {
  const text = await readText(request, bytesMax);
  try {
    return JSON.parse(text) as Call;
  } catch {
    throw new BerthError("bad_json", "The body is not JSON.");
  }
}

const attachedBodies = new WeakMap<Request, string>();

/** Gives a request a body that has already arrived. */
export function attachBody(request: Request, body: string): Request {
  attachedBodies.set(request, body);
  return request;
}

async function readText(request: Request, bytesMax: number): Promise<string> {
  const text = attachedBodies.get(request);
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
  const timer = setTimeout(() => {
    reader.cancel(new BerthError("body_timeout", "")).catch(() => {});
  }, limits.bodyReadMs);
  const startedAt = performance.now();
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
    clearTimeout(timer);
  }
  if (performance.now() - startedAt >= limits.bodyReadMs) {
    throw new BerthError("body_timeout", `The body did not arrive within ${limits.bodyReadMs} ms.`);
  }
  return Buffer.concat(chunks);
}

function tooLarge(limit: number): BerthError {
  return new BerthError("too_large", `The body is larger than ${limit} bytes.`, {
    facts: { limit },
  });
}
