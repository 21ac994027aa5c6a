/** Reads /proc: which processes live and who started them, and sends signals to exactly the intended process. */
import { readdirSync, readFileSync, statSync } from "node:fs";

/** A PID may be reused; together with the start time it names one process for good. */
export type ProcessIdentity = { pid: number; start: string };

export function identifyProcess(pid: number): ProcessIdentity | undefined {
  const fields = statOf(pid);
  const start = fields?.[fieldStart];
  return start === undefined ? undefined : { pid, start };
}

/** Leaves out those that have ended. */
export function identifyAll(pids: number[]): ProcessIdentity[] {
  return pids.flatMap((pid) => identifyProcess(pid) ?? []);
}

export function isAlive(process: ProcessIdentity): boolean {
  const fields = statOf(process.pid);
  if (fields?.[fieldStart] !== process.start) return false;
  // The first thread may have ended before the others, which still hold the resources of the process.
  return fields[fieldState] !== "Z" || entries(`/proc/${process.pid}/task`).length > 1;
}

/** Checks all threads: they stop one after the other, and may outlive the first. */
export function isStopped(pid: number): boolean {
  return entries(`/proc/${pid}/task`).every((thread) => {
    const state = statOf(pid, thread)?.[fieldState];
    return state === undefined || ["T", "t", "Z", "X"].includes(state);
  });
}

/** Returns false if the process has ended already. */
export function sendSignal(to: ProcessIdentity, signal: number | NodeJS.Signals): boolean {
  if (!isAlive(to)) return false;
  try {
    return process.kill(to.pid, signal);
  } catch (error) {
    if (isNotFound(error)) return false;
    throw error;
  }
}

export function childrenOf(pid: number): number[] {
  return entries(`/proc/${pid}/task`).flatMap((thread) =>
    (text(`/proc/${pid}/task/${thread}/children`) ?? "").split(" ").filter(Boolean).map(Number),
  );
}

/** Orphans become children of the first process of their namespace, so this finds every process below it. */
export function descendantsOf(pid: number): number[] {
  const children = childrenOf(pid);
  return children.flatMap((child) => [child, ...descendantsOf(child)]);
}

export function argumentsOf(pid: number): string[] {
  return (text(`/proc/${pid}/cmdline`) ?? "").split("\0");
}

/** Whether the process runs this file, whatever its name says. Only root may read this of a dying, undumpable process. */
export function isProgramOf(pid: number, path: string): boolean {
  const expected = statSync(path);
  try {
    const actual = statSync(`/proc/${pid}/exe`);
    return actual.ino === expected.ino && actual.dev === expected.dev;
  } catch (error) {
    if (isNotFound(error) || codeOf(error) === "EACCES") return false;
    throw error;
  }
}

// Counted from the state field: the name before it may hold spaces and parentheses.
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
    if (isNotFound(error)) return undefined;
    throw error;
  }
}

function entries(path: string): string[] {
  try {
    return readdirSync(path);
  } catch (error) {
    if (isNotFound(error)) return [];
    throw error;
  }
}

function isNotFound(error: unknown): boolean {
  const code = codeOf(error);
  return code === "ENOENT" || code === "ESRCH";
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && "code" in error ? error.code : undefined;
}
