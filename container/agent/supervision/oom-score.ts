/**
 * Owns that whoever starts a command outlives it where memory ends: the kernel then ends the largest process, which
 * among small ones is the agent, and with it goes the container. Does not own how much memory there is.
 *
 * What a command starts inherits its rank. So it is born with most of the highest one, which its parent takes for that
 * moment, and gets all of it as soon as there is somebody to give it to: what runs already goes before the parent in
 * between too, and so does what the command starts before it has all of it. A command may lower its rank again, to its
 * parent's and not below.
 */
import { readFileSync, writeFileSync } from "node:fs";

const highest = 1000;
/** The rest is more than an agent's part of all but the smallest memories. */
const atBirth = 0.75;

const againMs = 5;

/** Of this process, as it was made. */
let own: number | undefined;

/** `birth` is synchronous. */
export function outlived<T extends { pid: number }>(birth: () => T): T {
  own ??= rankOf();
  rank("self", Math.round(own + (highest - own) * atBirth));
  let child: T;
  try {
    child = birth();
  } finally {
    rank("self", own);
  }
  // The kernel wakes who has started it a moment before it may be written to by one who is not root.
  if (!rank(child.pid, highest)) setTimeout(rank, againMs, child.pid, highest);
  return child;
}

function rankOf(): number {
  try {
    return Number(readFileSync("/proc/self/oom_score_adj", "latin1"));
  } catch {
    return 0;
  }
}

function rank(pid: number | "self", value: number): boolean {
  try {
    writeFileSync(`/proc/${pid}/oom_score_adj`, String(value));
    return true;
  } catch {
    // It is gone, or may not be written to: it stays what it was born as. So does what a command starts in its first
    // moment where a tender may not write to itself, as in a room of an engine that is not root.
    return false;
  }
}
