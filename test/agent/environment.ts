/** Reads the environment of running processes, by which tests find the processes of one agent. */
import { readdirSync, readFileSync, readlinkSync } from "node:fs";

const retryMs = 2;
/** After so many reads, an empty environment is believed. */
const readsMax = 25;

export function processesWith(variable: string): number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => environmentOf(pid).includes(variable));
}

/** Empty for a process that has ended, or that belongs to the kernel. */
export function environmentOf(pid: number): string[] {
  for (let reads = 1; ; reads += 1) {
    const text = readOf(() => readFileSync(`/proc/${pid}/environ`, "latin1"));
    if (text !== "" || !runsProgram(pid) || reads === readsMax) return text.split("\0");
    // A spawn returns when the kernel has accepted the program, whose environment is readable a moment later.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, retryMs);
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
