/**
 * Owns the form of a deadline: a moment, and why. The owner of several takes the earliest.
 */
export type Deadline = { at: number; why: string };

export function earliest(deadlines: readonly (Deadline | undefined)[]): Deadline | undefined {
  let first: Deadline | undefined;
  for (const deadline of deadlines) {
    if (deadline !== undefined && (first === undefined || deadline.at < first.at)) first = deadline;
  }
  return first;
}
