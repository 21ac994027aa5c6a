/**
 * Owns the system calls by which two trees are looked at: all relative to open folders, no link is followed, names are raw
 * bytes (one character a byte). What a place is stays in the kernel's own form: millions of them are compared.
 */
import { dlopen, FFIType, type Pointer, ptr, read } from "bun:ffi";
import { constants } from "node:os";

const { i32, i64, u32, u64, ptr: pointer } = FFIType;

const libc = dlopen("libc.so.6", {
  syscall: { args: [u64, i32, pointer, pointer, u64], returns: i32 },
  statx: { args: [i32, pointer, i32, u32, pointer], returns: i32 },
  getdents64: { args: [i32, pointer, u64], returns: i32 },
  lseek: { args: [i32, u64, i32], returns: i64 },
  readlinkat: { args: [i32, pointer, pointer, u64], returns: i32 },
  llistxattr: { args: [pointer, pointer, u64], returns: i64 },
  lgetxattr: { args: [pointer, pointer, pointer, u64], returns: i64 },
  __errno_location: { args: [], returns: pointer },
}).symbols;

/** A name of 255 bytes fits behind the longest way that is taken at once. */
export const wayBytesMax = 3840;

const isArm = process.arch === "arm64";
const [onlyFolder, noFollow] = isArm ? [0o40000, 0o100000] : [0o200000, 0o400000];
const [closeOnExec, nonBlocking] = [0o2000000, 0o4000];
const [noLinks, beneath] = [4n, 8n];
const openat2 = 437n;
const how = new BigUint64Array(3);

export function openBelow(folder: number, way: string, kind: "folder" | "file"): number {
  const flags = noFollow | closeOnExec | (kind === "folder" ? onlyFolder : nonBlocking);
  how.set([BigInt(flags), 0n, noLinks | beneath]);
  return demand("openat2", libc.syscall(openat2, folder, text(way), ptr(how), 24n));
}

/** What `statx` says of one place, overwritten by the next look. */
export class Status {
  readonly #bytes = Buffer.alloc(256);
  readonly #at = ptr(this.#bytes);

  /** False: nothing has this name. */
  look(folder: number, name: string): boolean {
    const [stayAtLink, emptyPath, basicStats] = [0x100, 0x1000, 0x7ff];
    const flags = stayAtLink | (name === "" ? emptyPath : 0);
    const result = libc.statx(folder, text(name), flags, basicStats, this.#at);
    if (result !== 0 && errorNumber() === constants.errno.ENOENT) return false;
    demand("statx", result);
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

  get modifiedNs(): bigint {
    return this.#timeAt(112);
  }

  /** When the inode last changed; nobody can set it. */
  get changedNs(): bigint {
    return this.#timeAt(96);
  }

  /** Kind, mode, owner, group, number of a device. */
  isLike(other: Status): boolean {
    return this.#isSame(other, 20, 30) && this.#isSame(other, 128, 136);
  }

  isAsLongAs(other: Status): boolean {
    return this.#isSame(other, 40, 48);
  }

  isOfTheTimeOf(other: Status): boolean {
    return this.#isSame(other, 112, 124);
  }

  #timeAt(at: number): bigint {
    return (
      this.#bytes.readBigInt64LE(at) * 1_000_000_000n + BigInt(this.#bytes.readUInt32LE(at + 8))
    );
  }

  #isSame(other: Status, from: number, to: number): boolean {
    return this.#bytes.compare(other.#bytes, from, to, from, to) === 0;
  }
}

const entriesBytes = Buffer.alloc(64 * 1024);
const entriesPointer = ptr(entriesBytes);

/** From the beginning, in the folder's own order. */
export function* namesOf(folder: number): Generator<string[], void> {
  demand("lseek", Number(libc.lseek(folder, 0n, 0)));
  for (;;) {
    const size = BigInt(entriesBytes.length);
    const bytes = demand("getdents64", libc.getdents64(folder, entriesPointer, size));
    if (bytes === 0) return;
    const names: string[] = [];
    for (let at = 0; at < bytes; at += entriesBytes.readUInt16LE(at + 16)) {
      const name = entriesBytes.toString("latin1", at + 19, entriesBytes.indexOf(0, at + 19));
      if (name !== "." && name !== "..") names.push(name);
    }
    yield names;
  }
}

const targetBytes = Buffer.alloc(4096);

export function targetAt(folder: number, name: string): string {
  const size = BigInt(targetBytes.length);
  const bytes = libc.readlinkat(folder, text(name), ptr(targetBytes), size);
  return targetBytes.toString("latin1", 0, demand("readlinkat", bytes));
}

/** The kernel's own limits on the names of one place together, and on one value. */
const attributesBytes = Buffer.alloc(64 * 1024);
const attributesPointer = ptr(attributesBytes);

/** Names and values of the extended attributes, in one text; empty where there are none. */
export function attributesAt(folder: number, name: string): string {
  const place = `/proc/self/fd/${folder}/${name}`;
  const size = BigInt(attributesBytes.length);
  const bytes = Number(libc.llistxattr(text(place), attributesPointer, size));
  if (bytes === 0) return "";
  if (bytes < 0 && errorNumber() === constants.errno.EOPNOTSUPP) return "";
  demand("llistxattr", bytes);
  const names = attributesBytes.toString("latin1", 0, bytes).split("\0").filter(Boolean).sort();
  return names.map((one) => `${one}=${attributeAt(place, one)}`).join("\0");
}

function attributeAt(place: string, attribute: string): string {
  const size = BigInt(attributesBytes.length);
  const named = ptr(Buffer.from(`${attribute}\0`, "latin1"));
  const bytes = Number(libc.lgetxattr(text(place), named, attributesPointer, size));
  // Of what may not be read it counts that it is there.
  return bytes < 0 ? "" : attributesBytes.subarray(0, bytes).toString("base64");
}

function demand(call: string, result: number): number {
  if (result >= 0) return result;
  const errno = errorNumber();
  const found = Object.entries(constants.errno).find(([, number]) => number === errno);
  throw new Error(`${call} failed: ${found?.[0] ?? errno}`);
}

function errorNumber(): number {
  const at = libc.__errno_location();
  return at === null ? 0 : read.i32(at, 0);
}

// The calls are synchronous: one buffer serves all of them.
const textBytes = Buffer.alloc(4096 + 64);
const textPointer = ptr(textBytes);

function text(name: string): Pointer {
  textBytes[textBytes.write(name, "latin1")] = 0;
  return textPointer;
}
