/**
 * System calls to compare two trees: relative to open folders, without following links, with names as raw bytes (one
 * character per byte). File status stays in the kernel's binary form, because millions of entries are compared.
 */
import { dlopen, FFIType, type Pointer, ptr } from "bun:ffi";
import { constants } from "node:os";
import { check, errorNumber } from "../../jail/kernel.ts";

const { i32, i64, u32, u64, ptr: pointer } = FFIType;

const libc = dlopen("libc.so.6", {
  syscall: { args: [u64, i32, pointer, pointer, u64], returns: i32 },
  statx: { args: [i32, pointer, i32, u32, pointer], returns: i32 },
  getdents64: { args: [i32, pointer, u64], returns: i32 },
  lseek: { args: [i32, u64, i32], returns: i64 },
  readlinkat: { args: [i32, pointer, pointer, u64], returns: i32 },
  llistxattr: { args: [pointer, pointer, u64], returns: i64 },
  lgetxattr: { args: [pointer, pointer, pointer, u64], returns: i64 },
}).symbols;

/** Longest path that is opened at once; a name of 255 bytes still fits behind it. */
export const pathBytesMax = 3840;

const isArm = process.arch === "arm64";
const [onlyFolder, noFollow] = isArm ? [0o40000, 0o100000] : [0o200000, 0o400000];
const [closeOnExec, nonBlocking] = [0o2000000, 0o4000];
const [noLinks, beneath] = [4n, 8n];
const openat2 = 437n;
const openHow = new BigUint64Array(3);

export function openBelow(folder: number, path: string, kind: "folder" | "file"): number {
  const flags = noFollow | closeOnExec | (kind === "folder" ? onlyFolder : nonBlocking);
  openHow.set([BigInt(flags), 0n, noLinks | beneath]);
  return check("openat2", libc.syscall(openat2, folder, text(path), ptr(openHow), 24n));
}

/** The `statx` result of one entry; each `read` overwrites it. */
export class FileStatus {
  readonly #bytes = Buffer.alloc(256);
  readonly #pointer = ptr(this.#bytes);

  /** Returns false if no entry has this name. */
  read(folder: number, name: string): boolean {
    const [stayAtLink, emptyPath, basicStats] = [0x100, 0x1000, 0x7ff];
    const flags = stayAtLink | (name === "" ? emptyPath : 0);
    const result = libc.statx(folder, text(name), flags, basicStats, this.#pointer);
    if (result !== 0 && errorNumber() === constants.errno.ENOENT) return false;
    check("statx", result);
    return true;
  }

  get format(): number {
    return this.#bytes.readUInt16LE(28) >> 12;
  }

  get isFolder(): boolean {
    return this.format === 4;
  }

  get isFile(): boolean {
    return this.format === 8;
  }

  get isLink(): boolean {
    return this.format === 10;
  }

  get size(): number {
    return Number(this.#bytes.readBigUInt64LE(40));
  }

  /** Whether a file has fewer blocks than bytes. */
  get isSparse(): boolean {
    return Number(this.#bytes.readBigUInt64LE(48)) * 512 < this.size;
  }

  get inode(): bigint {
    return this.#bytes.readBigUInt64LE(32);
  }

  get links(): number {
    return this.#bytes.readUInt32LE(16);
  }

  get owner(): number {
    return this.#bytes.readUInt32LE(20);
  }

  get group(): number {
    return this.#bytes.readUInt32LE(24);
  }

  get mode(): number {
    return this.#bytes.readUInt16LE(28) & 0o7777;
  }

  /** The number of a device, in the form that `mknod` takes. */
  get device(): bigint {
    const [major, minor] = [this.#bytes.readUInt32LE(128), this.#bytes.readUInt32LE(132)];
    return BigInt((minor & 0xff) | ((major & 0xfff) << 8)) | (BigInt(minor & ~0xff) << 12n);
  }

  get modifiedNs(): bigint {
    return this.#timeAt(112);
  }

  /** When the inode last changed; programs cannot set it. */
  get changedNs(): bigint {
    return this.#timeAt(96);
  }

  /** Writes the times of the last access and modification, as `utimensat` takes them. */
  copyTimes(times: BigInt64Array): void {
    const nanoseconds = (offset: number) => BigInt(this.#bytes.readUInt32LE(offset));
    times[0] = this.#bytes.readBigInt64LE(64);
    times[1] = nanoseconds(72);
    times[2] = this.#bytes.readBigInt64LE(112);
    times[3] = nanoseconds(120);
  }

  /** Compares kind, mode, owner, group and device number. */
  hasSameAttributes(other: FileStatus): boolean {
    return this.#isSame(other, 20, 30) && this.#isSame(other, 128, 136);
  }

  hasSameSize(other: FileStatus): boolean {
    return this.#isSame(other, 40, 48);
  }

  hasSameModifiedTime(other: FileStatus): boolean {
    return this.#isSame(other, 112, 124);
  }

  #timeAt(offset: number): bigint {
    return (
      this.#bytes.readBigInt64LE(offset) * 1_000_000_000n +
      BigInt(this.#bytes.readUInt32LE(offset + 8))
    );
  }

  #isSame(other: FileStatus, from: number, to: number): boolean {
    return this.#bytes.compare(other.#bytes, from, to, from, to) === 0;
  }
}

const entriesBytes = Buffer.alloc(64 * 1024);
const entriesPointer = ptr(entriesBytes);

/** Yields the names in batches, in the folder's own order. */
export function* readNames(folder: number): Generator<string[], void> {
  check("lseek", Number(libc.lseek(folder, 0n, 0)));
  for (;;) {
    const size = BigInt(entriesBytes.length);
    const bytes = check("getdents64", libc.getdents64(folder, entriesPointer, size));
    if (bytes === 0) return;
    const names: string[] = [];
    for (let offset = 0; offset < bytes; offset += entriesBytes.readUInt16LE(offset + 16)) {
      const name = entriesBytes.toString(
        "latin1",
        offset + 19,
        entriesBytes.indexOf(0, offset + 19),
      );
      if (name !== "." && name !== "..") names.push(name);
    }
    yield names;
  }
}

const targetBytes = Buffer.alloc(4096);

export function readTarget(folder: number, name: string): string {
  const size = BigInt(targetBytes.length);
  const bytes = libc.readlinkat(folder, text(name), ptr(targetBytes), size);
  return targetBytes.toString("latin1", 0, check("readlinkat", bytes));
}

/** The kernel's limit for all attribute names of a file together, and for one value. */
const attributesBytes = Buffer.alloc(64 * 1024);
const attributesPointer = ptr(attributesBytes);

/** Names and values of the extended attributes in one text; empty if there are none. */
export function readAttributes(folder: number, name: string): string {
  const path = `/proc/self/fd/${folder}/${name}`;
  const size = BigInt(attributesBytes.length);
  const bytes = Number(libc.llistxattr(text(path), attributesPointer, size));
  if (bytes === 0) return "";
  if (bytes < 0 && errorNumber() === constants.errno.EOPNOTSUPP) return "";
  check("llistxattr", bytes);
  const names = attributesBytes.toString("latin1", 0, bytes).split("\0").filter(Boolean).sort();
  return names.map((attribute) => `${attribute}=${readAttribute(path, attribute)}`).join("\0");
}

function readAttribute(path: string, attribute: string): string {
  const size = BigInt(attributesBytes.length);
  const namePointer = ptr(Buffer.from(`${attribute}\0`, "latin1"));
  const bytes = Number(libc.lgetxattr(text(path), namePointer, attributesPointer, size));
  // An attribute that cannot be read still counts as present.
  return bytes < 0 ? "" : attributesBytes.subarray(0, bytes).toString("base64");
}

// The calls are synchronous: one buffer serves all of them.
const textBytes = Buffer.alloc(4096 + 64);
const textPointer = ptr(textBytes);

function text(name: string): Pointer {
  textBytes[textBytes.write(name, "latin1")] = 0;
  return textPointer;
}
