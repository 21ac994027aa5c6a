/**
 * Owns the look into /proc: who lives, who is whose child, and signals that hit exactly the process meant.
 * Does not own which processes should end.
 */
import { readdirSync, readFileSync, statSync } from "node:fs";

/** A number alone may have passed to another process; with its start it is one for ever. */
export type ProcessName = { pid: number; start: string };

export function nameOf(pid: number): ProcessName | undefined {
  const fields = statOf(pid);
  const start = fields?.[fieldStart];
  return start === undefined ? undefined : { pid, start };
}

export function isAlive(process: ProcessName): boolean {
  const fields = statOf(process.pid);
  if (fields?.[fieldStart] !== process.start) return false;
  // The first thread may have ended before the others, who still hold what the process holds.
  return fields[fieldState] !== "Z" || entries(`/proc/${process.pid}/task`).length > 1;
}

/** All its threads: they stop one after the other, and may outlive the first. */
export function isStopped(pid: number): boolean {
  return entries(`/proc/${pid}/task`).every((thread) => {
    const state = statOf(pid, thread)?.[fieldState];
    return state === undefined || ["T", "t", "Z", "X"].includes(state);
  });
}

/** False where it was gone already. */
export function sendSignal(to: ProcessName, signal: number | NodeJS.Signals): boolean {
  if (!isAlive(to)) return false;
  try {
    return process.kill(to.pid, signal);
  } catch (error) {
    if (isGone(error)) return false;
    throw error;
  }
}

export function childrenOf(pid: number): number[] {
  return entries(`/proc/${pid}/task`).flatMap((thread) =>
    (text(`/proc/${pid}/task/${thread}/children`) ?? "").split(" ").filter(Boolean).map(Number),
  );
}

/** Orphans become children of the first process of their namespace, so this is everybody below it. */
export function descendantsOf(pid: number): number[] {
  const children = childrenOf(pid);
  return children.flatMap((child) => [child, ...descendantsOf(child)]);
}

export function argumentsOf(pid: number): string[] {
  return (text(`/proc/${pid}/cmdline`) ?? "").split("\0");
}

/** Whether it runs this very file, whatever it calls itself. One that is closed and dying shows that to root alone. */
export function isProgramOf(pid: number, path: string): boolean {
  const meant = statSync(path);
  try {
    const its = statSync(`/proc/${pid}/exe`);
    return its.ino === meant.ino && its.dev === meant.dev;
  } catch (error) {
    if (isGone(error) || codeOf(error) === "EACCES") return false;
    throw error;
  }
}

// Counted from the state on: the name before it may hold spaces and brackets.
const fieldState = 0;
const fieldStart = 19;

function statOf(pid: number, thread = ""): string[] | undefined {
  const stat = text(thread === "" ? `/proc/${pid}/stat` : `/proc/${pid}/task/${thread}/stat`);
  return stat?.slice(stat.lastIndexOf(")") + 2).split(" ");
}

function text(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    if (isGone(error)) return undefined;
    throw error;
  }
}

function entries(path: string): string[] {
  try {
    return readdirSync(path);
  } catch (error) {
    if (isGone(error)) return [];
    throw error;
  }
}

function isGone(error: unknown): boolean {
  const code = codeOf(error);
  return code === "ENOENT" || code === "ESRCH";
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && "code" in error ? error.code : undefined;
}
