/** Names the temporary files of one run in `.git/berth`, and removes those of runs that were killed. */
import { randomUUID } from "node:crypto";
import { copyFileSync, readdirSync, rmSync, statSync, utimesSync } from "node:fs";
import { join } from "node:path";
import { isAlive } from "../state/file-lock.ts";

const temporaryName = /^(?:in|out|index)\.(\d+)\.[0-9a-f-]{36}(?:\.pack|\.lock)?$/;
/** A process unknown here may run on another machine with the same disk. */
const staleAfterMs = 3_600_000;

export function temporaryPath(folder: string, kind: "in" | "out" | "index", ending = ""): string {
  return join(folder, `${kind}.${process.pid}.${randomUUID()}${ending}`);
}

/** A pack may have gigabytes, and nothing else removes it. */
export function removeStaleFiles(folder: string): void {
  for (const name of readdirSync(folder)) {
    const pid = temporaryName.exec(name)?.[1];
    if (pid === undefined || isAlive(Number(pid))) continue;
    const path = join(folder, name);
    const { mtimeMs } = statSync(path, { throwIfNoEntry: false }) ?? { mtimeMs: Date.now() };
    if (Date.now() - mtimeMs > staleAfterMs) rmSync(path, { force: true });
  }
}

/**
 * Works on a copy of an index, so that the original is neither locked nor written. A missing index has no copy either:
 * git treats that as an empty one.
 */
export async function withIndexCopy<T>(
  from: string,
  folder: string,
  work: (copy: string) => Promise<T>,
): Promise<T> {
  const copy = copyIndex(from, folder);
  try {
    return await work(copy);
  } finally {
    rmSync(copy, { force: true });
    rmSync(`${copy}.lock`, { force: true });
  }
}

function copyIndex(from: string, folder: string): string {
  const path = temporaryPath(folder, "index");
  try {
    const { mtimeMs } = statSync(from);
    copyFileSync(from, path);
    // git rereads files that are not older than the index: a copy with a later time would hide changes.
    const seconds = Math.floor(mtimeMs) / 1000;
    utimesSync(path, seconds, seconds);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
  }
  return path;
}
