/** Reads /proc: memory, processor time and descriptors of the machine and of process trees. */
import { readdirSync, readFileSync, readlinkSync } from "node:fs";

const kibibyte = 1024;
/** USER_HZ: the same on every Linux that Node runs on. */
const ticksPerSecond = 100;

export function memoryAvailableBytes(): number {
  return bytesIn(readFileSync("/proc/meminfo", "utf8"), "MemAvailable");
}

/** The processor time of all cores since boot. */
export function machineSeconds(): { busy: number; all: number } {
  const line = /^cpu +(.*)$/m.exec(readFileSync("/proc/stat", "utf8"))?.[1] ?? "";
  // user nice system idle iowait irq softirq steal.
  const ticks = line.split(" ").slice(0, 8).map(Number);
  const all = ticks.reduce((sum, count) => sum + count, 0) / ticksPerSecond;
  return { busy: all - ((ticks[3] ?? 0) + (ticks[4] ?? 0)) / ticksPerSecond, all };
}

/** Memory of the kernel for processes, mounts, cgroups and networks; most of it belongs to no process. */
export function kernelBytes(): Record<string, number> {
  const text = readFileSync("/proc/meminfo", "utf8");
  const kinds = ["Slab", "KernelStack", "PageTables", "Percpu", "Shmem"];
  return Object.fromEntries(kinds.map((kind) => [kind, bytesIn(text, kind)]));
}

/** `pid` and everything below it. */
export function treeOf(pid: number): number[] {
  const found = [pid];
  for (let index = 0; index < found.length; index += 1)
    found.push(...childrenOf(found[index] ?? 0));
  return found;
}

/** The processor time of those processes that still run. */
export function cpuSeconds(pids: number[]): Map<number, number> {
  return new Map(pids.flatMap((pid) => entry(pid, ticksOf(pid) / ticksPerSecond)));
}

/** Proportional memory: pages that several processes share are counted once. Undefined if this user may not read it. */
export function proportionalBytes(pids: number[]): number | undefined {
  return sumOf("Pss", pids);
}

/** Heaps and stacks only: pages of program files are shared with other processes and come and go with them. */
export function anonymousBytes(pids: number[]): number | undefined {
  return sumOf("Pss_Anon", pids);
}

function sumOf(field: "Pss" | "Pss_Anon", pids: number[]): number | undefined {
  let sum = 0;
  for (const pid of pids) {
    const text = read(`/proc/${pid}/smaps_rollup`);
    if (text === undefined) return undefined;
    sum += bytesIn(text, field);
  }
  return sum;
}

export function nameOf(pid: number): string {
  return read(`/proc/${pid}/comm`)?.trim() ?? "";
}

/** Counts the descriptors of files below the folder. */
export function openBelow(pid: number, folder: string): number {
  return readdirSync(`/proc/${pid}/fd`).filter((fd) => {
    try {
      return readlinkSync(`/proc/${pid}/fd/${fd}`).startsWith(folder);
    } catch {
      // It was closed during the scan.
      return false;
    }
  }).length;
}

export function residentBytes(pid: number): number {
  return bytesIn(read(`/proc/${pid}/status`) ?? "", "VmRSS");
}

/** Private memory, without program file and shared libraries. */
export function privateBytes(pid: number): number {
  const text = read(`/proc/${pid}/smaps_rollup`) ?? "";
  return bytesIn(text, "Private_Clean") + bytesIn(text, "Private_Dirty");
}

export function isRunning(pid: number): boolean {
  const state = /^State:\s+(\S)/m.exec(read(`/proc/${pid}/status`) ?? "")?.[1];
  return state !== undefined && state !== "Z" && state !== "X";
}

function childrenOf(pid: number): number[] {
  try {
    return readdirSync(`/proc/${pid}/task`).flatMap((thread) =>
      (read(`/proc/${pid}/task/${thread}/children`) ?? "").split(" ").filter(Boolean).map(Number),
    );
  } catch {
    return [];
  }
}

function ticksOf(pid: number): number {
  const stat = read(`/proc/${pid}/stat`);
  if (stat === undefined) return Number.NaN;
  // The name in parentheses may contain parentheses itself.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return Number(fields[11]) + Number(fields[12]);
}

/** The value of one line of a file of the kernel, which is in KiB. */
function bytesIn(text: string, field: string): number {
  return Number(new RegExp(`^${field}:\\s+(\\d+) kB$`, "m").exec(text)?.[1] ?? 0) * kibibyte;
}

function entry(pid: number, value: number): [number, number][] {
  return Number.isNaN(value) ? [] : [[pid, value]];
}

function read(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
}
