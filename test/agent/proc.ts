/** Reads the kernel's table of processes, by which tests find and check the processes of one agent. */
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

export function childrenOf(pid: number): number[] {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8");
  return children.split(" ").filter(Boolean).map(Number);
}

/** The fields of /proc/<pid>/stat from the state on, whatever the name of the process. Empty if there is none. */
export function statFields(pid: number): string[] {
  const stat = readOf(() => readFileSync(`/proc/${pid}/stat`, "utf8"));
  return stat === "" ? [] : stat.slice(stat.lastIndexOf(")") + 2).split(" ");
}

/** The kernel's letter for a process, such as `Z` for a zombie; empty if there is no such process. */
export function stateOf(pid: number): string {
  return statFields(pid)[0] ?? "";
}

/** The names of all threads except the first. */
export function threadsOf(pid: number): string[] {
  const folder = `/proc/${pid}/task`;
  const others = readdirSync(folder).filter((thread) => thread !== String(pid));
  return others.map((thread) => readFileSync(`${folder}/${thread}/comm`, "utf8").trim());
}
