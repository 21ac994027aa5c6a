/**
 * Owns names that nobody else draws: keys of calls, ids of requests, tickets.
 * By what there is everywhere: a page that came over plain HTTP has no `crypto.randomUUID`.
 */
export function drawn(bytes: number): string {
  const random = crypto.getRandomValues(new Uint8Array(bytes));
  return Array.from(random, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
