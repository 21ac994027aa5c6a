/**
 * Owns reading an answer that has to be short, of an agent that may send anything: no more than so many bytes are held.
 * Does not own what it says, nor how long it may take: who waits gives up by the signal.
 */

/** Undefined: it is longer than that, or was given up. Rejects where it broke off. */
export async function shortText(
  response: Response,
  bytesMax: number,
  signal?: AbortSignal,
): Promise<string | undefined> {
  const { body, headers } = response;
  const length = headers.get("content-length");
  // Whatever a length says, a body in chunks goes on for as long as it likes.
  const isBounded = length !== null && !headers.has("transfer-encoding");
  if (isBounded && Number(length) <= bytesMax) return response.text();
  if (body === null) return "";
  const reader = body.getReader();
  const giveUp = () => void reader.cancel().catch(() => undefined);
  signal?.addEventListener("abort", giveUp);
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
  giveUp();
  return undefined;
}

/** Undefined where it is none. */
export function parsedJson(text: string | undefined): unknown {
  if (text === undefined) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
