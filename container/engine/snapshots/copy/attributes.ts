/** Gives a copy the owner, mode, extended attributes and times of its original, in an order in which none undoes another. */
import { dlopen, FFIType, ptr } from "bun:ffi";
import { constants } from "node:os";
import { errorNumber } from "../../jail/kernel.ts";
import type { FileStatus } from "../changes/kernel.ts";
import { check, type EntryLocation } from "./kernel.ts";

const { i32, i64, u32, u64, ptr: pointer } = FFIType;

const libc = dlopen("libc.so.6", {
  fchown: { args: [i32, u32, u32], returns: i32 },
  fchownat: { args: [i32, pointer, u32, u32, i32], returns: i32 },
  fchmod: { args: [i32, u32], returns: i32 },
  fchmodat: { args: [i32, pointer, u32, i32], returns: i32 },
  futimens: { args: [i32, pointer], returns: i32 },
  utimensat: { args: [i32, pointer, pointer, i32], returns: i32 },
  flistxattr: { args: [i32, pointer, u64], returns: i64 },
  llistxattr: { args: [pointer, pointer, u64], returns: i64 },
  lgetxattr: { args: [pointer, pointer, pointer, u64], returns: i64 },
  lsetxattr: { args: [pointer, pointer, pointer, u64, i32], returns: i32 },
}).symbols;

const stayAtLink = 0x100;
const times = new BigInt64Array(4);
const timesPointer = ptr(times);

/** For an entry that both sides have opened. */
export function copyAttributes(
  from: EntryLocation & { fd: number },
  to: EntryLocation & { fd: number },
  status: FileStatus,
): void {
  check("fchown", libc.fchown(to.fd, status.owner, status.group));
  check("fchmod", libc.fchmod(to.fd, status.mode));
  if (libc.flistxattr(from.fd, null, 0n) > 0) copyExtended(from, to);
  status.copyTimes(times);
  check("futimens", libc.futimens(to.fd, timesPointer));
}

/** For an entry that must not be opened: a link, pipe, socket or device. */
export function copyAttributesUnopened(
  from: EntryLocation,
  to: EntryLocation,
  status: FileStatus,
): void {
  const name = text(to.name);
  const { owner, group } = status;
  check("fchownat", libc.fchownat(to.folder, name, owner, group, stayAtLink));
  if (!status.isLink) check("fchmodat", libc.fchmodat(to.folder, name, status.mode, 0));
  copyExtended(from, to);
  status.copyTimes(times);
  check("utimensat", libc.utimensat(to.folder, name, timesPointer, stayAtLink));
}

/** The kernel's limit for all names of an entry together, and for one value. */
const valueBytes = Buffer.alloc(64 * 1024);
const valuePointer = ptr(valueBytes);
const valueSize = BigInt(valueBytes.length);

function copyExtended(from: EntryLocation, to: EntryLocation): void {
  const [fromPath, toPath] = [pathOf(from), pathOf(to)];
  const listed = libc.llistxattr(fromPath, valuePointer, valueSize);
  if (listed < 0 && errorNumber() === constants.errno.EOPNOTSUPP) return;
  const names = valueBytes.toString("latin1", 0, check("llistxattr", listed));
  for (const attribute of names.split("\0").filter(Boolean)) {
    const name = text(attribute);
    const bytes = libc.lgetxattr(fromPath, name, valuePointer, valueSize);
    const size = BigInt(check("lgetxattr", bytes));
    const result = libc.lsetxattr(toPath, name, valuePointer, size, 0);
    // The label that the machine gives to every file need not be settable; its policy labels the copy as well.
    if (result < 0 && attribute.startsWith("security.")) continue;
    check("lsetxattr", result);
  }
}

function pathOf({ folder, name }: EntryLocation): Buffer {
  return text(`/proc/self/fd/${folder}/${name}`);
}

function text(value: string): Buffer {
  return Buffer.from(`${value}\0`, "latin1");
}
