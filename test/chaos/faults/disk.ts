/** The fault of a full disk: one file takes all free space for a while. */
import { closeSync, openSync, rmSync, writeSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import type { Fault } from "./fault.ts";

const fullMinMs = 500;
const fullMaxMs = 3_000;
const pieceBytes = 1024 * 1024;

export const fillDisk: Fault = async ({ target, random, over }) => {
  if (!target.hasDisk) return undefined;
  const ballast = join(target.data, "..", "ballast");
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
