/**
 * Owns handing the agent its document: bytes in memory without a name, read to the end on descriptor 3.
 * Does not own the document. It holds the secret: it is never in a file, an argument or an environment.
 */
import { dlopen, FFIType, ptr } from "bun:ffi";
import { closeSync, writeSync } from "node:fs";

const libc = dlopen("libc.so.6", {
  memfd_create: { args: [FFIType.ptr, FFIType.u32], returns: FFIType.i32 },
}).symbols;

const closeOnExec = 1;
const name = Buffer.from("berth-boot\0");

/** Calls `use` with a descriptor whose position is the document's beginning; closed when it returns. */
export function withDocument<T>(document: unknown, use: (fd: number) => T): T {
  const fd = libc.memfd_create(ptr(name), closeOnExec);
  if (fd < 0) throw new Error("memfd_create failed: the kernel gives no memory or no descriptor");
  try {
    const bytes = Buffer.from(JSON.stringify(document));
    for (let at = 0; at < bytes.length; ) at += writeSync(fd, bytes, at, bytes.length - at, at);
    return use(fd);
  } finally {
    closeSync(fd);
  }
}
