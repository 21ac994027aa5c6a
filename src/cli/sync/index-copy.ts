/**
 * Owns copies of an index to work on: the one that is copied is never locked nor written by us.
 * Does not own what is done with them.
 */
import { copyFileSync, rmSync, statSync, utimesSync } from "node:fs";
import { passingFile } from "./passing-files.ts";

/** Of an index that is not there the copy is not there either: git takes that as an empty one. */
export async function withCopy<T>(
  from: string,
  folder: string,
  work: (copy: string) => Promise<T>,
): Promise<T> {
  const copy = copyOf(from, folder);
  try {
    return await work(copy);
  } finally {
    rmSync(copy, { force: true });
    rmSync(`${copy}.lock`, { force: true });
  }
}

function copyOf(from: string, folder: string): string {
  const path = passingFile(folder, "index");
  try {
    const { mtimeMs } = statSync(from);
    copyFileSync(from, path);
    // Git looks into files that are not older than the index: a copy that seems younger would hide a change.
    const seconds = Math.floor(mtimeMs) / 1000;
    utimesSync(path, seconds, seconds);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
  }
  return path;
}
