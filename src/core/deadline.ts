/** When to act next: the moments at which an object must check its state, and the delay before a retry. */

/** A moment and the reason for it. An object with several deadlines uses the earliest. */
export type Deadline = { at: number; why: string };

export function earliest(deadlines: readonly (Deadline | undefined)[]): Deadline | undefined {
  let first: Deadline | undefined;
  for (const deadline of deadlines) {
    if (deadline !== undefined && (first === undefined || deadline.at < first.at)) first = deadline;
  }
  return first;
}

/** Starts at `firstMs`, doubles with each try and stops growing at `maxMs`. */
export function backOffMs(firstMs: number, tries: number, maxMs: number): number {
  return Math.min(firstMs * 2 ** tries, maxMs);
}
