/**
 * Owns the fault of a disk that is full: one file takes all that is left of it for a while.
 */
import { closeSync, openSync, rmSync, writeSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import type { Fault } from "./fault.ts";

const fullMinMs = 500;
const fullMaxMs = 3_000;
const pieceBytes = 1024 * 1024;

export const fillDisk: Fault = async ({ stage, random, over }) => {
  if (!stage.hasDisk) return undefined;
  const ballast = join(stage.data, "..", "ballast");
  try {
    const isFull = fill(ballast);
    await pause(random.between(fullMinMs, fullMaxMs), undefined, { signal: over }).catch(() => {});
    return isFull ? "fill disk" : undefined;
  } finally {
    rmSync(ballast, { force: true });
  }
};

function fill(path: string): boolean {
  const file = openSync(path, "w");
  try {
    for (let size = pieceBytes; size >= 1; ) {
      try {
        writeSync(file, Buffer.alloc(size));
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== "ENOSPC") throw error;
        size = Math.floor(size / 16);
      }
    }
    return true;
  } finally {
    closeSync(file);
  }
}
