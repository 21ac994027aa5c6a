/**
 * Owns the names of files that one run makes in our folder for a moment, and removing those of runs that were killed.
 * Does not own what is in them.
 */
import { randomUUID } from "node:crypto";
import { readdirSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { isAlive } from "../state/file-lock.ts";

const named = /^(?:in|out|index)\.(\d+)\.[0-9a-f-]{36}(?:\.pack|\.lock)?$/;
/** A process that is not known here may be one of another machine that has the same disk. */
const keptMs = 3_600_000;

export function passingFile(folder: string, kind: "in" | "out" | "index", ending = ""): string {
  return join(folder, `${kind}.${process.pid}.${randomUUID()}${ending}`);
}

/** A pack may be gigabytes, and nobody else looks for it. */
export function removeLeftOver(folder: string): void {
  for (const name of readdirSync(folder)) {
    const pid = named.exec(name)?.[1];
    if (pid === undefined || isAlive(Number(pid))) continue;
    const path = join(folder, name);
    const { mtimeMs } = statSync(path, { throwIfNoEntry: false }) ?? { mtimeMs: Date.now() };
    if (Date.now() - mtimeMs > keptMs) rmSync(path, { force: true });
  }
}
