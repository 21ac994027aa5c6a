/**
 * Owns which answers are not whole yet: to be read as streams, of which nobody knows when they end.
 * Does not own what they wait for (heartbeat.ts).
 */
const underWay = new WeakSet<Response>();

export function markUnderWay(response: Response): Response {
  underWay.add(response);
  return response;
}

export function isUnderWay(response: Response): boolean {
  return underWay.has(response);
}
