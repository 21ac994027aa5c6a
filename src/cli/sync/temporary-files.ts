/**
 * Names the temporary files of one run in `.git/berth`, and removes those of runs that were killed.
 */
import { randomUUID } from "node:crypto";
import { readdirSync, rmSync, statSync } from "node:fs";
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
