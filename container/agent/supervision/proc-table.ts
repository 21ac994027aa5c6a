/**
 * Owns the questions about processes that the kernel answers: whose children, alive or not, and signals to them.
 * Does not own which of them belong to a command: cgroup.ts and tender.ts do.
 */
import { readdirSync, readFileSync } from "node:fs";

/** Direct children of all threads of `pid`, the dead but not yet collected ones among them. */
export function childrenOf(pid: number): number[] {
  try {
    return readdirSync(`/proc/${pid}/task`).flatMap((thread) =>
      numbers(readFileSync(`/proc/${pid}/task/${thread}/children`, "latin1")),
    );
  } catch {
    // It ended while we looked, or the kernel keeps no such lists.
    return childrenByScan(pid);
  }
}

/** The same by looking at every process: for kernels without lists of children. */
export function childrenByScan(pid: number): number[] {
  return numbers(readdirSync("/proc").join(" ")).filter((one) => statusOf(one)?.parent === pid);
}

/** Everything below `pid`, parents before their children. */
export function descendantsOf(pid: number): number[] {
  const found = childrenOf(pid);
  for (let at = 0; at < found.length; at += 1) {
    const next = found[at];
    if (next !== undefined) found.push(...childrenOf(next));
  }
  return found;
}

/** PF_EXITING: it has closed, or is about to close, all it held; its end is a matter of the kernel's time. */
const exiting = 0x4;

/** Runs, sleeps or is stopped: not gone, not on its way out, and not merely waiting to be collected. */
export function isAlive(pid: number): boolean {
  const status = statusOf(pid);
  if (status === undefined) return false;
  return status.state !== "Z" && status.state !== "X" && (status.flags & exiting) === 0;
}

/** True where it was sent; a process that is gone already is no error. */
export function send(pid: number, signal: NodeJS.Signals): boolean {
  try {
    return process.kill(pid, signal);
  } catch {
    return false;
  }
}

const freezePassesMax = 16;

/** Stops first, so that none is born while we look, then kills. Call again until none is left. */
export function killBelow(pid: number, except: (child: number) => boolean = () => false): number {
  const seen = new Set<number>();
  for (let pass = 0; pass < freezePassesMax; pass += 1) {
    const fresh = childrenOf(pid)
      .filter((child) => !except(child))
      .flatMap((child) => [child, ...descendantsOf(child)])
      .filter((one) => !seen.has(one) && isAlive(one));
    if (fresh.length === 0) break;
    for (const one of fresh) {
      seen.add(one);
      send(one, "SIGSTOP");
    }
  }
  for (const one of seen) send(one, "SIGKILL");
  return seen.size;
}

function statusOf(pid: number): { state: string; parent: number; flags: number } | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
    // The name stands in parentheses and may hold any of them itself.
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    const [state = "", parent = "", , , , , flags = ""] = fields;
    return { state, parent: Number(parent), flags: Number(flags) };
  } catch {
    return undefined;
  }
}

export function numbers(text: string): number[] {
  return text
    .split(/\s+/)
    .filter((word) => /^[0-9]+$/.test(word))
    .map(Number);
}
