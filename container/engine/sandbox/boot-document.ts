/**
 * Passes the agent its boot document on descriptor 3, in anonymous memory. It holds the secret, which must never be
 * in a file, an argument or an environment.
 */
import { dlopen, FFIType, ptr } from "bun:ffi";
import { closeSync, writeSync } from "node:fs";

const libc = dlopen("libc.so.6", {
  memfd_create: { args: [FFIType.ptr, FFIType.u32], returns: FFIType.i32 },
}).symbols;

const closeOnExec = 1;
const name = Buffer.from("berth-boot\0");

/** Calls `use` with a descriptor positioned at the start of the document and closes it afterwards. */
export function withDocument<T>(document: unknown, use: (fd: number) => T): T {
  const fd = libc.memfd_create(ptr(name), closeOnExec);
  if (fd < 0) throw new Error("memfd_create failed: no memory or no descriptor is left.");
  try {
    const bytes = Buffer.from(JSON.stringify(document));
    for (let offset = 0; offset < bytes.length; ) {
      offset += writeSync(fd, bytes, offset, bytes.length - offset, offset);
    }
    return use(fd);
  } finally {
    closeSync(fd);
  }
}
