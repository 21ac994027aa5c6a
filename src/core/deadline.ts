/**
 * A moment at which an object must check its state, and why. An object with several deadlines uses the earliest.
 */
export type Deadline = { at: number; why: string };

export function earliest(deadlines: readonly (Deadline | undefined)[]): Deadline | undefined {
  let first: Deadline | undefined;
  for (const deadline of deadlines) {
    if (deadline !== undefined && (first === undefined || deadline.at < first.at)) first = deadline;
  }
  return first;
}
