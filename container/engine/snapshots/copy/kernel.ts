/**
 * System calls to create entries in open folders, so that no path is too long. Names are raw bytes, one character per
 * byte. See ../changes/kernel.ts for the calls that read.
 */
import { dlopen, FFIType, type Pointer, ptr } from "bun:ffi";
import { constants } from "node:os";
import { errorNumber } from "../../jail/kernel.ts";
import type { FileStatus } from "../changes/kernel.ts";

const { i32, i64, u32, u64, ptr: pointer } = FFIType;

const libc = dlopen("libc.so.6", {
  syscall: { args: [u64, i32, pointer, u32, u64], returns: i32 },
  openat: { args: [i32, pointer, i32, u32], returns: i32 },
  mkdirat: { args: [i32, pointer, u32], returns: i32 },
  linkat: { args: [i32, pointer, i32, pointer, i32], returns: i32 },
  symlinkat: { args: [pointer, i32, pointer], returns: i32 },
  ioctl: { args: [i32, u64, i64], returns: i32 },
  lseek: { args: [i32, i64, i32], returns: i64 },
  ftruncate: { args: [i32, i64], returns: i32 },
  copy_file_range: { args: [i32, pointer, i32, pointer, u64, u32], returns: i64 },
}).symbols;

/** An error of the kernel with its code, such as EMLINK. */
export class CopyError extends Error {
  readonly code: string;

  constructor(call: string) {
    const errno = errorNumber();
    const found = Object.entries(constants.errno).find(([, number]) => number === errno);
    const code = found?.[0] ?? `errno ${errno}`;
    super(`${call}: ${code}`);
    this.code = code;
  }
}

export function check(call: string, result: number | bigint): number {
  if (result < 0) throw new CopyError(call);
  return Number(result);
}

const isArm = process.arch === "arm64";
const onlyFolder = isArm ? 0o40000 : 0o200000;
const noFollow = isArm ? 0o100000 : 0o400000;
const [writeOnly, create, exclusive, nonBlocking, closeOnExec] = [
  1, 0o100, 0o200, 0o4000, 0o2000000,
];
const [ownerFile, ownerFolder] = [0o600, 0o700];

export function openFolder(folder: number, name: string): number {
  const flags = onlyFolder | noFollow | closeOnExec;
  return check("openat", libc.openat(folder, first(name), flags, 0));
}

export function openFile(folder: number, name: string): number {
  const flags = noFollow | nonBlocking | closeOnExec;
  return check("openat", libc.openat(folder, first(name), flags, 0));
}

export function makeFolder(folder: number, name: string): void {
  check("mkdirat", libc.mkdirat(folder, first(name), ownerFolder));
}

export function makeFile(folder: number, name: string): number {
  const flags = writeOnly | create | exclusive | closeOnExec;
  return check("openat", libc.openat(folder, first(name), flags, ownerFile));
}

export function makeLink(folder: number, name: string, linkTarget: string): void {
  check("symlinkat", libc.symlinkat(first(linkTarget), folder, second(name)));
}

/** An entry by its name in an open folder; `.` is the folder itself. */
export type EntryLocation = { folder: number; name: string };

export function makeHardLink(from: EntryLocation, to: EntryLocation): void {
  const result = libc.linkat(from.folder, first(from.name), to.folder, second(to.name), 0);
  check("linkat", result);
}

/** Makes a pipe, a socket or a device, also the device 0:0 by which an overlay marks what was removed. */
export function makeSpecial(folder: number, name: string, { format, device }: FileStatus): void {
  const mknodat = isArm ? 33n : 259n;
  const mode = (format << 12) | ownerFile;
  check("mknodat", libc.syscall(mknodat, folder, first(name), mode, device));
}

const cloneRequest = 0x40049409n;
/** Whether the file system can share blocks between files; known after the first attempt. */
let canClone = true;
const offsets = new BigInt64Array(2);
const [fromOffset, toOffset] = [ptr(offsets), ptr(offsets, 8)];
const [seekData, seekHole] = [3, 4];

/** Shares the blocks where the file system can, and leaves holes as they are. */
export function copyContent(from: number, to: number, { size, isSparse }: FileStatus): void {
  if (size === 0) return;
  if (canClone && libc.ioctl(to, cloneRequest, BigInt(from)) === 0) return;
  canClone = false;
  check("ftruncate", libc.ftruncate(to, BigInt(size)));
  if (isSparse) copyData(from, to, size);
  else copyRange(from, to, 0, size);
}

function copyData(from: number, to: number, size: number): void {
  for (let end = 0; end < size; ) {
    const start = libc.lseek(from, BigInt(end), seekData);
    if (start < 0 && errorNumber() === constants.errno.ENXIO) return;
    end = check("lseek", libc.lseek(from, BigInt(check("lseek", start)), seekHole));
    copyRange(from, to, Number(start), end);
  }
}

function copyRange(from: number, to: number, start: number, end: number): void {
  offsets.fill(BigInt(start));
  for (let left = end - start; left > 0; ) {
    const result = libc.copy_file_range(from, fromOffset, to, toOffset, BigInt(left), 0);
    const copied = check("copy_file_range", result);
    if (copied === 0) return;
    left -= copied;
  }
}

// The calls are synchronous and take no longer names, so two buffers serve all of them.
const [firstBytes, secondBytes] = [Buffer.alloc(4096), Buffer.alloc(4096)];
const [firstPointer, secondPointer] = [ptr(firstBytes), ptr(secondBytes)];

function first(name: string): Pointer {
  firstBytes[firstBytes.write(name, "latin1")] = 0;
  return firstPointer;
}

function second(name: string): Pointer {
  secondBytes[secondBytes.write(name, "latin1")] = 0;
  return secondPointer;
}
