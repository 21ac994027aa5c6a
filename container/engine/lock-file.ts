/** Locks files; the kernel releases a lock when the last process that has its descriptor ends. */
import { dlopen, FFIType } from "bun:ffi";
import { closeSync, openSync } from "node:fs";

const libc = dlopen("libc.so.6", {
  flock: { args: [FFIType.i32, FFIType.i32], returns: FFIType.i32 },
}).symbols;

const [exclusive, notBlocking] = [2, 4];

/** Returns a descriptor that holds the lock; undefined: another process has it. */
export function tryLock(path: string): number | undefined {
  const fd = openSync(path, "a", 0o600);
  if (libc.flock(fd, exclusive | notBlocking) === 0) return fd;
  closeSync(fd);
  return undefined;
}
