/**
 * Locks a data folder for one engine at a time. The kernel releases the lock when the process ends.
 */
import { dlopen, FFIType } from "bun:ffi";
import { openSync } from "node:fs";

const libc = dlopen("libc.so.6", {
  flock: { args: [FFIType.i32, FFIType.i32], returns: FFIType.i32 },
}).symbols;

const exclusive = 2;
const notBlocking = 4;

/** The descriptor stays open for the life of the process and is not inherited by children. */
export function takeInstanceLock(data: string): void {
  const fd = openSync(`${data}/lock`, "a", 0o600);
  if (libc.flock(fd, exclusive | notBlocking) !== 0) {
    throw new Error(
      `BERTH_ENGINE_DATA: Another engine uses ${data}. Stop it or choose another folder.`,
    );
  }
}
