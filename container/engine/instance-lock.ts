/**
 * Owns the claim to a data folder: one engine at a time, let go by the kernel when the process ends.
 * Does not own the folder.
 */
import { dlopen, FFIType } from "bun:ffi";
import { openSync } from "node:fs";

const libc = dlopen("libc.so.6", {
  flock: { args: [FFIType.i32, FFIType.i32], returns: FFIType.i32 },
}).symbols;

const exclusive = 2;
const notBlocking = 4;

/** The descriptor stays open as long as the process lives; it is not passed on to children. */
export function holdAlone(data: string): void {
  const fd = openSync(`${data}/lock`, "a", 0o600);
  if (libc.flock(fd, exclusive | notBlocking) !== 0) {
    throw new Error(
      `BERTH_ENGINE_DATA: another engine works in ${data}: end it or name another folder`,
    );
  }
}
