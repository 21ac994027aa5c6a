/**
 * Makes temporary copies of a git index to work on, so that the original is neither locked nor written.
 */
import { copyFileSync, rmSync, statSync, utimesSync } from "node:fs";
import { temporaryPath } from "./temporary-files.ts";

/** A missing index has no copy either: git treats that as an empty one. */
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
