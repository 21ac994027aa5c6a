/**
 * Owns reading the environment of running processes, by which a test tells whose they are.
 * Does not own which they should be.
 */
import { readdirSync, readFileSync, readlinkSync } from "node:fs";

const looksAgainMs = 2;
/** Of a process that really has none: it is looked at this often, then believed. */
const looksMax = 25;

export function processesWith(variable: string): number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => environmentOf(pid).includes(variable));
}

/** Empty of one that has ended, or that is the kernel's. */
export function environmentOf(pid: number): string[] {
  for (let looks = 1; ; looks += 1) {
    const text = readOf(() => readFileSync(`/proc/${pid}/environ`, "latin1"));
    if (text !== "" || !runsProgram(pid) || looks === looksMax) return text.split("\0");
    // A start is answered when the kernel takes the new program, which has its environment a moment later.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, looksAgainMs);
  }
}

function runsProgram(pid: number): boolean {
  return readOf(() => readlinkSync(`/proc/${pid}/exe`)) !== "";
}

function readOf(read: () => string): string {
  try {
    return read();
  } catch {
    return "";
  }
}
