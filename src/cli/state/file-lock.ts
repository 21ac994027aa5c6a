/**
 * A lock between processes of one machine, held for a few synchronous lines and never across an await.
 * The holder is the highest of a series of numbered files. A process takes the lock by creating the next number, which
 * the file system lets only one do, once the highest was released or its creator is dead. The highest number is never
 * removed, so nobody can create a number a second time and be taken for the holder.
 */
import { linkSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { basename, dirname } from "node:path";

const pollMs = 5;
/**
 * Nothing here holds the lock this long: an older number belongs to a stopped process, or to another one with the same
 * pid.
 */
const holdMaxMs = 10_000;

export class LockBusy extends Error {}

export function withFileLock<T>(path: string, waitMs: number, action: () => T): T {
  const own = acquire(path, waitMs);
  try {
    return action();
  } finally {
    // Released, but still the highest number.
    writeFileSync(`${own}.free`, "");
  }
}

function acquire(path: string, waitMs: number): string {
  const deadline = Date.now() + waitMs;
  for (;;) {
    const newest = readNumbers(path).at(-1) ?? 0;
    if (newest === 0 || isReleased(path, newest)) {
      const own = createNumber(path, newest + 1);
      if (own !== undefined) return own;
      continue;
    }
    if (Date.now() > deadline) throw new LockBusy(`${path} is held by ${readHolder(path, newest)}`);
    sleepSync(pollMs);
  }
}

/** Undefined where another process was first. */
function createNumber(path: string, number: number): string | undefined {
  const own = `${path}.${number}`;
  const temporary = `${path}.of-${process.pid}`;
  writeFileSync(temporary, String(process.pid));
  try {
    // Linked with its content, so that nobody sees it empty.
    linkSync(temporary, own);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return undefined;
    throw error;
  } finally {
    rmSync(temporary, { force: true });
  }
  // A process that read the numbers long ago may create one that was removed since; the highest decides.
  const all = readNumbers(path);
  if (all.at(-1) !== number) {
    rmSync(own, { force: true });
    return undefined;
  }
  for (const old of all.slice(0, -1)) {
    rmSync(`${path}.${old}`, { force: true });
    rmSync(`${path}.${old}.free`, { force: true });
  }
  return own;
}

function readNumbers(path: string): number[] {
  const prefix = `${basename(path)}.`;
  return readdirSync(dirname(path))
    .filter((name) => name.startsWith(prefix))
    .map((name) => name.slice(prefix.length))
    .filter((rest) => /^\d+$/.test(rest))
    .map(Number)
    .sort((a, b) => a - b);
}

function isReleased(path: string, number: number): boolean {
  try {
    statSync(`${path}.${number}.free`);
    return true;
  } catch {
    return !isAlive(readHolder(path, number)) || isOld(`${path}.${number}`);
  }
}

function readHolder(path: string, number: number): number {
  try {
    return Number(readFileSync(`${path}.${number}`, "utf8"));
  } catch {
    // Removed since: the next check finds a higher one.
    return process.pid;
  }
}

function isOld(path: string): boolean {
  try {
    return Date.now() - statSync(path).mtimeMs > holdMaxMs;
  } catch {
    return false;
  }
}

export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}

function sleepSync(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}
