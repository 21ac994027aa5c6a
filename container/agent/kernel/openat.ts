/**
 * Owns the system calls on files that the runtime does not offer, by foreign function: all relative to open folders,
 * names as raw bytes (one character a byte, so that any name survives and text order is byte order).
 * Does not own rights (libc.ts) nor what a failure means to a caller (refusal.ts).
 */
import { dlopen, FFIType, type Pointer, ptr, read } from "bun:ffi";
import { closeSync } from "node:fs";
import { constants } from "node:os";

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
  /** Names a place without opening what is there: devices and pipes notice nothing. */
  placeOnly: 0o10000000,
  /** A file without a name, gone with its last descriptor; the name that is given is its folder's. */
  nameless: 0o20000000 | (isArm ? 0o40000 : 0o200000),
} as const;

/** Below no folder: names are absolute. */
export const nowhere = -100;

/** The names of links in /proc that jump into a process stay closed. */
const noMagicLinks = 2n;
/** No link and no `..` leads out of the folder that the way began in. */
const beneath = 8n;
const openat2 = 437n;
const how = new BigUint64Array(3);

/** Never follows a link of /proc that jumps. */
export function openAt(folder: number, name: string, flags: number, mode = 0): number {
  return openBy(noMagicLinks, folder, name, flags, mode);
}

/** Fails with EXDEV where the way would lead out of `folder`, by whatever link. */
export function openBeneath(folder: number, name: string, flags: number): number {
  return openBy(noMagicLinks | beneath, folder, name, flags, 0);
}

function openBy(
  resolve: bigint,
  folder: number,
  name: string,
  flags: number,
  mode: number,
): number {
  how[0] = BigInt(flags | open.closeOnExec);
  how[1] = BigInt(mode);
  how[2] = resolve;
  return demand("open", libc.syscall(openat2, folder, first(name), ptr(how), 24n));
}

export function close(fd: number): void {
  closeSync(fd);
}

export type Status = {
  kind: "file" | "folder" | "link" | "other";
  mode: number;
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

/** A link itself. An empty name: the open folder or file. */
export function statusAt(folder: number, name = ""): Status {
  const flags = noFollow | (name === "" ? emptyPath : 0);
  const wanted = basicStats | mountId;
  demand("stat", libc.statx(folder, first(name), flags, wanted, ptr(statusBytes)));
  const mode = statusBytes.readUInt16LE(28);
  const [major, minor] = [statusBytes.readUInt32LE(136), statusBytes.readUInt32LE(140)];
  const device = (BigInt(major) << 32n) | BigInt(minor);
  const knowsMount = (statusBytes.readUInt32LE(0) & mountId) !== 0;
  return {
    kind: formats[mode >> 12] ?? "other",
    mode: mode & 0o7777,
    links: statusBytes.readUInt32LE(16),
    uid: statusBytes.readUInt32LE(20),
    gid: statusBytes.readUInt32LE(24),
    inode: statusBytes.readBigUInt64LE(32),
    size: Number(statusBytes.readBigUInt64LE(40)),
    modifiedNs:
      statusBytes.readBigInt64LE(112) * 1_000_000_000n + BigInt(statusBytes.readUInt32LE(120)),
    device,
    mount: knowsMount ? statusBytes.readBigUInt64LE(144) : device,
  };
}

export function isSame(one: Status, other: Status): boolean {
  return one.inode === other.inode && one.device === other.device;
}

export type Named = { name: string; isFolder: boolean | undefined };

const entriesBytes = Buffer.alloc(64 * 1024);
const [folderType, unknownType] = [4, 0];

/** The next names of an open folder, without `.` and `..`; empty at its end. */
export function namesOf(folder: number): Named[] {
  for (;;) {
    const size = BigInt(entriesBytes.length);
    const bytes = demand("readdir", libc.getdents64(folder, ptr(entriesBytes), size));
    const names: Named[] = [];
    for (let at = 0; at < bytes; at += entriesBytes.readUInt16LE(at + 16)) {
      const type = entriesBytes.readUInt8(at + 18);
      const name = entriesBytes.toString("latin1", at + 19, entriesBytes.indexOf(0, at + 19));
      if (name === "." || name === "..") continue;
      names.push({ name, isFolder: type === unknownType ? undefined : type === folderType });
    }
    if (names.length > 0 || bytes === 0) return names;
  }
}

const removeFolder = 0x200;

export function unlinkAt(folder: number, name: string, what: "file" | "folder"): void {
  demand("unlink", libc.unlinkat(folder, first(name), what === "folder" ? removeFolder : 0));
}

export function mkdirAt(folder: number, name: string, mode: number): void {
  demand("mkdir", libc.mkdirat(folder, first(name), mode));
}

const noReplace = 1;

export type Spot = { folder: number; name: string };

export function renameAt(from: Spot, to: Spot, { overwrite }: { overwrite: boolean }): void {
  const [old, fresh] = [first(from.name), second(to.name)];
  const flags = overwrite ? 0 : noReplace;
  demand("rename", libc.renameat2(from.folder, old, to.folder, fresh, flags));
}

const followLinks = 0x400;

/** One more name for an open file, also for one that has none; fails where something has that name. */
export function linkAt(fd: number, { folder, name }: Spot): void {
  const own = first(`/proc/self/fd/${fd}`);
  demand("link", libc.linkat(nowhere, own, folder, second(name), followLinks));
}

export function symlinkAt(says: string, { folder, name }: Spot): void {
  demand("symlink", libc.symlinkat(first(says), folder, second(name)));
}

const times = new BigInt64Array(4);
const leaveTime = 0x3ffffffen;

/** When it was last modified; of a link, the link's own. */
export function setModifiedAt({ folder, name }: Spot, ns: bigint, follow = false): void {
  const nano = ((ns % 1_000_000_000n) + 1_000_000_000n) % 1_000_000_000n;
  times.set([0n, leaveTime, (ns - nano) / 1_000_000_000n, nano]);
  demand("utimens", libc.utimensat(folder, first(name), ptr(times), follow ? 0 : noFollow));
}

const targetBytes = Buffer.alloc(4096);

export function targetAt(folder: number, name = ""): string {
  const size = BigInt(targetBytes.length);
  const bytes = libc.readlinkat(folder, first(name), ptr(targetBytes), size);
  return targetBytes.toString("latin1", 0, demand("readlink", bytes));
}

const fileSystemBytes = Buffer.alloc(256);

/** The number by which the kernel names the kind of file system. */
export function fileSystemOf(fd: number): number {
  demand("fstatfs", libc.fstatfs(fd, ptr(fileSystemBytes)));
  return fileSystemBytes.readUInt32LE(0);
}

/** As the runtime's own calls fail, so that both are read alike. */
export class KernelError extends Error {
  readonly code: string;

  constructor(call: string, code: string) {
    super(`${call}: ${code}`);
    this.code = code;
  }
}

function demand(call: string, result: number): number {
  if (result >= 0) return result;
  const at = libc.__errno_location();
  const errno = at === null ? 0 : read.i32(at, 0);
  const found = Object.entries(constants.errno).find(([, number]) => number === errno);
  throw new KernelError(call, found?.[0] ?? `errno ${errno}`);
}

// The calls are synchronous, and no path that the kernel takes is longer: two buffers serve all of them.
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
