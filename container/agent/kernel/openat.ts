/**
 * Calls file functions of libc that the runtime does not offer, all relative to open folders. Names are raw bytes, one
 * character per byte, so that any name survives and text order is byte order.
 */

import { dlopen, FFIType, type Pointer, ptr, read } from "bun:ffi";
import { closeSync } from "node:fs";
import { constants } from "node:os";
import { type IdRange, inside } from "../../engine/jail/id-range.ts";

const { i32, u32, u64, ptr: pointer } = FFIType;

const libc = dlopen("libc.so.6", {
  syscall: { args: [u64, i32, pointer, pointer, u64], returns: i32 },
  statx: { args: [i32, pointer, i32, u32, pointer], returns: i32 },
  getdents64: { args: [i32, pointer, u64], returns: i32 },
  unlinkat: { args: [i32, pointer, i32], returns: i32 },
  mkdirat: { args: [i32, pointer, u32], returns: i32 },
  renameat2: { args: [i32, pointer, i32, pointer, u32], returns: i32 },
  readlinkat: { args: [i32, pointer, pointer, u64], returns: i32 },
  linkat: { args: [i32, pointer, i32, pointer, i32], returns: i32 },
  symlinkat: { args: [pointer, i32, pointer], returns: i32 },
  utimensat: { args: [i32, pointer, pointer, i32], returns: i32 },
  fstatfs: { args: [i32, pointer], returns: i32 },
  __errno_location: { args: [], returns: pointer },
}).symbols;

const isArm = process.arch === "arm64";

export const open = {
  read: 0,
  write: 1,
  create: 0o100,
  exclusive: 0o200,
  noTerminal: 0o400,
  nonBlocking: 0o4000,
  folder: isArm ? 0o40000 : 0o200000,
  noFollow: isArm ? 0o100000 : 0o400000,
  closeOnExec: 0o2000000,
  /** O_PATH: refers to an entry without opening it, so that devices and pipes notice nothing. */
  pathOnly: 0o10000000,
  /** O_TMPFILE: a file without a name in the given folder; it disappears with its last descriptor. */
  unnamed: 0o20000000 | (isArm ? 0o40000 : 0o200000),
} as const;

/** AT_FDCWD, used with absolute names. */
export const currentFolder = -100;

/** RESOLVE_NO_MAGICLINKS: fails on links of /proc that jump into a process. */
const noMagicLinks = 2n;
/** RESOLVE_BENEATH: fails if a link or `..` leads out of the folder. */
const beneath = 8n;
const openat2 = 437n;
const openHow = new BigUint64Array(3);

/** Follows links, except those of /proc that jump. */
export function openAt(folder: number, name: string, flags: number, mode = 0): number {
  return openWith(noMagicLinks, folder, name, flags, mode);
}

/** Fails with EXDEV if the name leads out of `folder`. */
export function openBeneath(folder: number, name: string, flags: number): number {
  return openWith(noMagicLinks | beneath, folder, name, flags, 0);
}

function openWith(
  resolve: bigint,
  folder: number,
  name: string,
  flags: number,
  mode: number,
): number {
  openHow[0] = BigInt(flags | open.closeOnExec);
  openHow[1] = BigInt(mode);
  openHow[2] = resolve;
  return checkResult("open", libc.syscall(openat2, folder, first(name), ptr(openHow), 24n));
}

export function close(fd: number): void {
  closeSync(fd);
}

/** Closes the descriptor at the end of the block: `using _ = closing(fd)`. */
export function closing(fd: number): Disposable {
  return { [Symbol.dispose]: () => closeSync(fd) };
}

let idRange: IdRange | undefined;

/** From here on owners are shown as the sandbox sees them; an agent has one sandbox. */
export function showOwnersInside(range: IdRange | undefined): void {
  idRange = range;
}

function insideOf(id: number): number {
  return idRange === undefined ? id : inside(idRange, id);
}

export type Status = {
  kind: "file" | "folder" | "link" | "other";
  mode: number;
  /** Owners, as the sandbox sees them. */
  uid: number;
  gid: number;
  links: number;
  size: number;
  inode: bigint;
  device: bigint;
  mount: bigint;
  modifiedNs: bigint;
};

const [noFollow, emptyPath] = [0x100, 0x1000];
const [basicStats, mountId] = [0x7ff, 0x1000];
const statusBytes = Buffer.alloc(256);
const formats: Record<number, Status["kind"]> = { 8: "file", 4: "folder", 10: "link" };

/** Does not follow a link. With an empty name: the open folder or file itself. */
export function statusAt(folder: number, name = ""): Status {
  const flags = noFollow | (name === "" ? emptyPath : 0);
  const wanted = basicStats | mountId;
  checkResult("stat", libc.statx(folder, first(name), flags, wanted, ptr(statusBytes)));
  const mode = statusBytes.readUInt16LE(28);
  const [major, minor] = [statusBytes.readUInt32LE(136), statusBytes.readUInt32LE(140)];
  const device = (BigInt(major) << 32n) | BigInt(minor);
  const knowsMount = (statusBytes.readUInt32LE(0) & mountId) !== 0;
  return {
    kind: formats[mode >> 12] ?? "other",
    mode: mode & 0o7777,
    links: statusBytes.readUInt32LE(16),
    uid: insideOf(statusBytes.readUInt32LE(20)),
    gid: insideOf(statusBytes.readUInt32LE(24)),
    inode: statusBytes.readBigUInt64LE(32),
    size: Number(statusBytes.readBigUInt64LE(40)),
    modifiedNs:
      statusBytes.readBigInt64LE(112) * 1_000_000_000n + BigInt(statusBytes.readUInt32LE(120)),
    device,
    mount: knowsMount ? statusBytes.readBigUInt64LE(144) : device,
  };
}

export function isSameFile(left: Status, right: Status): boolean {
  return left.inode === right.inode && left.device === right.device;
}

type DirEntry = { name: string; isFolder: boolean | undefined };

const entriesBytes = Buffer.alloc(64 * 1024);
const [folderType, unknownType] = [4, 0];

/** The next entries of an open folder, without `.` and `..`; empty at its end. */
export function readEntries(folder: number): DirEntry[] {
  for (;;) {
    const size = BigInt(entriesBytes.length);
    const bytes = checkResult("readdir", libc.getdents64(folder, ptr(entriesBytes), size));
    const entries: DirEntry[] = [];
    for (let offset = 0; offset < bytes; offset += entriesBytes.readUInt16LE(offset + 16)) {
      const type = entriesBytes.readUInt8(offset + 18);
      const name = entriesBytes.toString(
        "latin1",
        offset + 19,
        entriesBytes.indexOf(0, offset + 19),
      );
      if (name === "." || name === "..") continue;
      entries.push({ name, isFolder: type === unknownType ? undefined : type === folderType });
    }
    if (entries.length > 0 || bytes === 0) return entries;
  }
}

const removeFolder = 0x200;

export function unlinkAt(folder: number, name: string, what: "file" | "folder"): void {
  checkResult("unlink", libc.unlinkat(folder, first(name), what === "folder" ? removeFolder : 0));
}

export function mkdirAt(folder: number, name: string, mode: number): void {
  checkResult("mkdir", libc.mkdirat(folder, first(name), mode));
}

const noReplace = 1;

export type EntryLocation = { folder: number; name: string };

export function renameAt(
  from: EntryLocation,
  to: EntryLocation,
  { overwrite }: { overwrite: boolean },
): void {
  const [old, fresh] = [first(from.name), second(to.name)];
  const flags = overwrite ? 0 : noReplace;
  checkResult("rename", libc.renameat2(from.folder, old, to.folder, fresh, flags));
}

const followLinks = 0x400;

/** Gives an open file another name, or its first one; fails if the name exists. */
export function linkAt(fd: number, { folder, name }: EntryLocation): void {
  const own = first(`/proc/self/fd/${fd}`);
  checkResult("link", libc.linkat(currentFolder, own, folder, second(name), followLinks));
}

export function symlinkAt(target: string, { folder, name }: EntryLocation): void {
  checkResult("symlink", libc.symlinkat(first(target), folder, second(name)));
}

const times = new BigInt64Array(4);
const leaveTime = 0x3ffffffen;

/** Sets the time of the last modification, of a link itself unless `follow`. */
export function setModifiedAt({ folder, name }: EntryLocation, ns: bigint, follow = false): void {
  const nano = ((ns % 1_000_000_000n) + 1_000_000_000n) % 1_000_000_000n;
  times.set([0n, leaveTime, (ns - nano) / 1_000_000_000n, nano]);
  checkResult("utimens", libc.utimensat(folder, first(name), ptr(times), follow ? 0 : noFollow));
}

const targetBytes = Buffer.alloc(4096);

export function readlinkAt(folder: number, name = ""): string {
  const size = BigInt(targetBytes.length);
  const bytes = libc.readlinkat(folder, first(name), ptr(targetBytes), size);
  return targetBytes.toString("latin1", 0, checkResult("readlink", bytes));
}

const fileSystemBytes = Buffer.alloc(256);

/** The kernel's number for the type of the file system. */
export function fileSystemType(fd: number): number {
  checkResult("fstatfs", libc.fstatfs(fd, ptr(fileSystemBytes)));
  return fileSystemBytes.readUInt32LE(0);
}

/** Has the same `code` as errors of the runtime's own file functions. */
export class KernelError extends Error {
  readonly code: string;

  constructor(call: string, code: string) {
    super(`${call}: ${code}`);
    this.code = code;
  }
}

function checkResult(call: string, result: number): number {
  if (result >= 0) return result;
  const address = libc.__errno_location();
  const errno = address === null ? 0 : read.i32(address, 0);
  const found = Object.entries(constants.errno).find(([, number]) => number === errno);
  throw new KernelError(call, found?.[0] ?? `errno ${errno}`);
}

// The calls are synchronous and the kernel takes no longer path, so two buffers serve all calls.
const nameBytesMax = 4095;
const [firstBytes, secondBytes] = [Buffer.alloc(4096), Buffer.alloc(4096)];
const [firstPointer, secondPointer] = [ptr(firstBytes), ptr(secondBytes)];

function first(name: string): Pointer {
  write(firstBytes, name);
  return firstPointer;
}

function second(name: string): Pointer {
  write(secondBytes, name);
  return secondPointer;
}

function write(bytes: Buffer, name: string): void {
  if (name.length > nameBytesMax) throw new KernelError("path", "ENAMETOOLONG");
  if (name.includes("\0")) throw new KernelError("path", "EINVAL");
  bytes[bytes.write(name, "latin1")] = 0;
}
