/** Makes descriptors that belong to no path: pipes, and files in memory. Nothing inherits them unless passed on. */
import { dlopen, FFIType, ptr } from "bun:ffi";
import { closeSync, writeSync } from "node:fs";
import { check } from "./kernel.ts";

const libc = dlopen("libc.so.6", {
  pipe2: { args: [FFIType.ptr, FFIType.i32], returns: FFIType.i32 },
  memfd_create: { args: [FFIType.ptr, FFIType.u32], returns: FFIType.i32 },
}).symbols;

const closeOnExec = 0o2000000;
const ends = new Int32Array(2);

/** Returns the read end and the write end. */
export function openPipe(): [number, number] {
  check("pipe2", libc.pipe2(ptr(ends), closeOnExec));
  const [read, write] = ends;
  if (read === undefined || write === undefined) throw new Error("pipe2 gave no descriptors");
  return [read, write];
}

const memoryFileName = Buffer.from("berth\0");

/** Keeps the contents until its last descriptor is closed. Its reader begins at the start. */
export function createMemoryFile(contents: string | Uint8Array): number {
  const closeOnExecFlag = 1;
  const fd = check("memfd_create", libc.memfd_create(ptr(memoryFileName), closeOnExecFlag));
  const bytes = typeof contents === "string" ? Buffer.from(contents) : contents;
  try {
    // Written at a position, so that the file offset stays 0.
    for (let written = 0; written < bytes.length; ) {
      written += writeSync(fd, bytes, written, bytes.length - written, written);
    }
  } catch (error) {
    closeSync(fd);
    throw error;
  }
  return fd;
}
