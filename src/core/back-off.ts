/**
 * Computes the delay before a retry: it starts at `firstMs`, doubles with each try and stops growing at `maxMs`.
 */
export function backOffMs(firstMs: number, tries: number, maxMs: number): number {
  return Math.min(firstMs * 2 ** tries, maxMs);
}
