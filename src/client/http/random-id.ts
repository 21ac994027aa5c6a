/**
 * Generates random ids: idempotency keys, request ids, tickets. Uses `getRandomValues`, because a page loaded over
 * plain HTTP has no `crypto.randomUUID`.
 */
export function randomId(bytes: number): string {
  const random = crypto.getRandomValues(new Uint8Array(bytes));
  return Array.from(random, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
