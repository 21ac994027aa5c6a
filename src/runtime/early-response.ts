/**
 * Owns a refusal that comes while the request's body is still on the way. A container's port tells the end of an answer
 * only when that body has ended too, so the refusal is read by its length. Does not own other answers.
 */

/** What the agent refuses with is a line of JSON. */
const refusalBytesMax = 16_384;

/** Of a request with a body. */
export async function whole(response: Response): Promise<Response> {
  const { body, headers, ok } = response;
  const length = Number(headers.get("content-length") ?? 0);
  if (body === null || ok) return response;
  if (length === 0 || length > refusalBytesMax) return response;
  const reader = body.getReader();
  const bytes = new Uint8Array(length);
  for (let at = 0; at < length; ) {
    const { done, value } = await reader.read();
    if (done) throw new Error("the answer broke off");
    bytes.set(value, at);
    at += value.length;
  }
  // Nobody waits for the rest of the body any more.
  reader.cancel().catch(() => undefined);
  return new Response(bytes, response);
}
