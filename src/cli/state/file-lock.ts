/**
 * Owns a lock between processes of one machine, held for a few synchronous lines and never across a wait.
 * Does not own what it guards.
 *
 * The holder is the newest of a row of numbered files. One takes the lock by making the next number, which the file
 * system lets only one do, once the newest was let go or its maker is dead. The newest is never removed, so nobody
 * can make a number a second time and be taken for the holder.
 */
import { linkSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { basename, dirname } from "node:path";

const lookEveryMs = 5;
/** Nothing here holds it as long: a number this old belongs to a process that was stopped, or to another of its pid. */
const heldAtMostMs = 10_000;

export class LockBusy extends Error {}

export function withFileLock<T>(path: string, waitMs: number, work: () => T): T {
  const mine = take(path, waitMs);
  try {
    return work();
  } finally {
    // Let go, but left as the newest.
    writeFileSync(`${mine}.free`, "");
  }
}

function take(path: string, waitMs: number): string {
  const limit = Date.now() + waitMs;
  for (;;) {
    const newest = numbersOf(path).at(-1) ?? 0;
    if (newest === 0 || isOver(path, newest)) {
      const mine = make(path, newest + 1);
      if (mine !== undefined) return mine;
      continue;
    }
    if (Date.now() > limit) throw new LockBusy(`${path} is held by ${holderOf(path, newest)}`);
    pause(lookEveryMs);
  }
}

/** Nothing where somebody else was first. */
function make(path: string, number: number): string | undefined {
  const mine = `${path}.${number}`;
  const beside = `${path}.of-${process.pid}`;
  writeFileSync(beside, String(process.pid));
  try {
    // With its content at once: nobody sees it empty.
    linkSync(beside, mine);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return undefined;
    throw error;
  } finally {
    rmSync(beside, { force: true });
  }
  // Who looked long ago may make a number that was removed since; the newest tells.
  const all = numbersOf(path);
  if (all.at(-1) !== number) {
    rmSync(mine, { force: true });
    return undefined;
  }
  for (const old of all.slice(0, -1)) {
    rmSync(`${path}.${old}`, { force: true });
    rmSync(`${path}.${old}.free`, { force: true });
  }
  return mine;
}

function numbersOf(path: string): number[] {
  const prefix = `${basename(path)}.`;
  return readdirSync(dirname(path))
    .filter((name) => name.startsWith(prefix))
    .map((name) => name.slice(prefix.length))
    .filter((rest) => /^\d+$/.test(rest))
    .map(Number)
    .sort((a, b) => a - b);
}

function isOver(path: string, number: number): boolean {
  try {
    statSync(`${path}.${number}.free`);
    return true;
  } catch {
    return !isAlive(holderOf(path, number)) || isOld(`${path}.${number}`);
  }
}

function holderOf(path: string, number: number): number {
  try {
    return Number(readFileSync(`${path}.${number}`, "utf8"));
  } catch {
    // Removed since: another look finds a newer one.
    return process.pid;
  }
}

function isOld(path: string): boolean {
  try {
    return Date.now() - statSync(path).mtimeMs > heldAtMostMs;
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

function pause(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}
