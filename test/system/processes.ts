/**
 * Owns the look at what runs: a process tree, with start times so that a reused pid is not mistaken.
 * Does not own any process.
 */
import { readdirSync, readFileSync } from "node:fs";

export type Seen = { pid: number; parent: number; startTime: string; command: string };

/** Every living process of the machine that this user may see. */
export function allProcesses(): Seen[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map((name) => look(Number(name)))
    .filter((seen) => seen !== undefined);
}

/** The process and all below it. */
export function treeOf(pid: number): Seen[] {
  const all = allProcesses();
  const tree = all.filter((seen) => seen.pid === pid);
  for (const above of tree) tree.push(...all.filter((seen) => seen.parent === above.pid));
  return tree;
}

export function alive(seen: Seen[]): Seen[] {
  return seen.filter(({ pid, startTime }) => look(pid)?.startTime === startTime);
}

/** Everything that names the folder in its arguments, wherever it hangs in the tree. */
export function naming(folder: string): Seen[] {
  return allProcesses().filter(({ command }) => command.includes(folder));
}

function look(pid: number): Seen | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    if (fields[0] === "Z") return undefined;
    const command = readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ").trim();
    return { pid, parent: Number(fields[1]), startTime: fields[19] ?? "", command };
  } catch {
    // It ended while we looked.
    return undefined;
  }
}
