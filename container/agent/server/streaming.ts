/** Marks responses that are still being written: they can only be read as streams, of unknown end. */

const streaming = new WeakSet<Response>();

export function markStreaming(response: Response): Response {
  streaming.add(response);
  return response;
}

export function isStreaming(response: Response): boolean {
  return streaming.has(response);
}
