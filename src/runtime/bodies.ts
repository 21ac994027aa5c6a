/** Reads or drains bodies that may be too long, cut off or never end, with limits on bytes and time. */
import { limits } from "../protocol/limits.ts";

/**
 * Reads a short text from a sender that may send anything. Returns undefined if the body is longer than `bytesMax` or
 * the signal aborts; rejects if the body breaks off.
 */
export async function readBoundedText(
  response: Response,
  bytesMax: number,
  signal?: AbortSignal,
): Promise<string | undefined> {
  const { body, headers } = response;
  const length = headers.get("content-length");
  // A chunked body may be longer than any declared length.
  const isBounded = length !== null && !headers.has("transfer-encoding");
  if (isBounded && Number(length) <= bytesMax) return response.text();
  if (body === null) return "";
  const reader = body.getReader();
  const cancel = () => void reader.cancel().catch(() => undefined);
  signal?.addEventListener("abort", cancel);
  const decoder = new TextDecoder();
  let text = "";
  for (let bytes = 0; ; ) {
    const { done, value } = await reader.read();
    if (signal?.aborted === true) return undefined;
    if (done) return text + decoder.decode();
    bytes += value.length;
    if (bytes > bytesMax) break;
    text += decoder.decode(value, { stream: true });
  }
  cancel();
  return undefined;
}

/** Returns undefined if the text is not JSON. */
export function parseJson(text: string | undefined): unknown {
  if (text === undefined) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** An error of the agent is one line of JSON. */
const refusalBytesMax = 16_384;

/**
 * Reads an error response that arrives while the request body is still being sent. A container port reports the end
 * of a response only after the end of the request body, so the response is read by its declared length.
 */
export async function readEarlyRefusal(response: Response): Promise<Response> {
  const { body, headers, ok } = response;
  const length = Number(headers.get("content-length") ?? 0);
  if (body === null || ok) return response;
  if (length === 0 || length > refusalBytesMax) return response;
  const reader = body.getReader();
  const bytes = new Uint8Array(length);
  for (let offset = 0; offset < length; ) {
    const { done, value } = await reader.read();
    if (done) throw new Error("the response broke off");
    bytes.set(value, offset);
    offset += value.length;
  }
  // The caller has its response and does not wait for the rest.
  reader.cancel().catch(() => undefined);
  return new Response(bytes, response);
}

/**
 * Drains the body of a refused call, up to a limit of bytes and time. A sender that writes its whole body before it
 * reads would otherwise see a broken connection instead of the refusal.
 */
export async function drainBody(request: Request): Promise<void> {
  // The sender waits for a response before it sends the body, and the refusal is that response.
  if (request.headers.has("expect")) return;
  if (request.body === null || request.bodyUsed || request.body.locked) return;
  const reader = request.body.getReader();
  let timer: ReturnType<typeof setTimeout> | undefined;
  const timeout = new Promise<undefined>((resolve) => {
    timer = setTimeout(() => resolve(undefined), limits.bodyReadMs);
  });
  try {
    for (let bytes = 0; bytes < limits.refusedBodyBytesMax; ) {
      const read = await Promise.race([reader.read(), timeout]);
      if (read === undefined || read.done) return;
      bytes += read.value.length;
    }
  } catch {
    // The sender has disconnected.
  } finally {
    clearTimeout(timer);
    reader.cancel().catch(() => undefined);
  }
}
