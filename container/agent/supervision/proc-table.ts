/** Reads the kernel's process table: children, descendants and whether they live; and sends signals to them. */
import { readdirSync, readFileSync } from "node:fs";

/** The direct children of all threads of `pid`, zombies included. */
export function listChildren(pid: number): number[] {
  try {
    return readdirSync(`/proc/${pid}/task`).flatMap((thread) =>
      parsePids(readFileSync(`/proc/${pid}/task/${thread}/children`, "latin1")),
    );
  } catch {
    // The process ended meanwhile, or the kernel has no such lists.
    return scanForChildren(pid);
  }
}

/** The same by a scan of all processes, for kernels without lists of children. */
function scanForChildren(pid: number): number[] {
  return parsePids(readdirSync("/proc").join(" ")).filter(
    (child) => readStatus(child)?.parent === pid,
  );
}

/** Everything below `pid`, parents before their children. */
export function listDescendants(pid: number): number[] {
  const found = listChildren(pid);
  for (let index = 0; index < found.length; index += 1) {
    const next = found[index];
    if (next !== undefined) found.push(...listChildren(next));
  }
  return found;
}

/** PF_EXITING: the process closes its files now, and the kernel ends it soon. */
const exiting = 0x4;

/** Whether it runs, sleeps or is stopped: it is not exiting and not a zombie. */
export function isAlive(pid: number): boolean {
  const status = readStatus(pid);
  if (status === undefined) return false;
  return status.state !== "Z" && status.state !== "X" && (status.flags & exiting) === 0;
}

/** Whether a signal or a debugger has stopped it, or it is dead. */
export function isStopped(pid: number): boolean {
  const state = readStatus(pid)?.state ?? "X";
  return ["T", "t", "Z", "X"].includes(state);
}

/** False: the process no longer exists. */
export function sendSignal(pid: number, signal: NodeJS.Signals): boolean {
  try {
    return process.kill(pid, signal);
  } catch {
    return false;
  }
}

const freezePassesMax = 16;

/**
 * Stops all descendants first, so that none of them forks during the scan, then kills them. Returns how many. Call again
 * until none is left.
 */
export function killDescendants(
  pid: number,
  except: (child: number) => boolean = () => false,
): number {
  const seen = new Set<number>();
  for (let pass = 0; pass < freezePassesMax; pass += 1) {
    const found = listChildren(pid)
      .filter((child) => !except(child))
      .flatMap((child) => [child, ...listDescendants(child)])
      .filter((descendant) => !seen.has(descendant) && isAlive(descendant));
    if (found.length === 0) break;
    for (const descendant of found) {
      seen.add(descendant);
      sendSignal(descendant, "SIGSTOP");
    }
  }
  for (const descendant of seen) sendSignal(descendant, "SIGKILL");
  return seen.size;
}

function readStatus(pid: number): { state: string; parent: number; flags: number } | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
    // The name is in parentheses and may itself contain parentheses.
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    const [state = "", parent = "", , , , , flags = ""] = fields;
    return { state, parent: Number(parent), flags: Number(flags) };
  } catch {
    return undefined;
  }
}

export function parsePids(text: string): number[] {
  return text
    .split(/\s+/)
    .filter((word) => /^[0-9]+$/.test(word))
    .map(Number);
}
