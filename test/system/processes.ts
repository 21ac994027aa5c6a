/**
 * Reads process trees from /proc, with start times so that a reused pid is not mistaken.
 */
import { readdirSync, readFileSync, readlinkSync } from "node:fs";

export type ProcessInfo = { pid: number; parent: number; startTime: string; command: string };

/** Every running process of the machine that this user may see. */
export function allProcesses(): ProcessInfo[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map((name) => readProcess(Number(name)))
    .filter((seen) => seen !== undefined);
}

/** The process and all its descendants. */
export function treeOf(pid: number): ProcessInfo[] {
  const all = allProcesses();
  const tree = all.filter((seen) => seen.pid === pid);
  for (const above of tree) tree.push(...all.filter((seen) => seen.parent === above.pid));
  return tree;
}

export function alive(seen: ProcessInfo[]): ProcessInfo[] {
  return seen.filter(({ pid, startTime }) => readProcess(pid)?.startTime === startTime);
}

/** Every process with the folder in its arguments, wherever it is in the tree. */
export function processesNaming(folder: string): ProcessInfo[] {
  return allProcesses().filter(({ command }) => command.includes(folder));
}

/** A file of /proc; empty if the process has ended. */
export function procFile(pid: number, name: string): string {
  try {
    return readFileSync(`/proc/${pid}/${name}`, "utf8");
  } catch {
    return "";
  }
}

/** What its descriptors lead to: paths, `socket:[…]`, `pipe:[…]`. */
export function openFiles(pid: number): string[] {
  try {
    return readdirSync(`/proc/${pid}/fd`).flatMap((fd) => readLink(`/proc/${pid}/fd/${fd}`));
  } catch {
    // It ended meanwhile.
    return [];
  }
}

function readLink(path: string): string[] {
  try {
    return [readlinkSync(path)];
  } catch {
    // It was closed meanwhile.
    return [];
  }
}

function readProcess(pid: number): ProcessInfo | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    if (fields[0] === "Z") return undefined;
    const command = readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ").trim();
    return { pid, parent: Number(fields[1]), startTime: fields[19] ?? "", command };
  } catch {
    // It ended meanwhile.
    return undefined;
  }
}
