/** Calls libc functions that the runtime does not offer, except those on files (openat.ts). */
import { dlopen, FFIType, ptr } from "bun:ffi";

const { i32, u32, u64, ptr: pointer } = FFIType;

const libc = dlopen("libc.so.6", {
  prctl: { args: [i32, u64, u64, u64, u64], returns: i32 },
  fchown: { args: [i32, u32, u32], returns: i32 },
  mkfifo: { args: [pointer, u32], returns: i32 },
  dup2: { args: [i32, i32], returns: i32 },
  waitpid: { args: [i32, pointer, i32], returns: i32 },
  setfsuid: { args: [u32], returns: i32 },
  setfsgid: { args: [u32], returns: i32 },
  setgroups: { args: [u64, pointer], returns: i32 },
  sync: { args: [], returns: FFIType.void },
  ioctl: { args: [i32, u64, u64], returns: i32 },
}).symbols;

const option = { setDumpable: 4, setChildSubreaper: 36, setNoNewPrivileges: 38 } as const;

/** Processes of the same user can then neither read this process's environment or memory, nor trace it. */
export function hideFromOthers(): void {
  assertOk("PR_SET_DUMPABLE", libc.prctl(option.setDumpable, 0n, 0n, 0n, 0n));
}

/** Writes to disk what programs have written to files. */
export function syncFiles(): void {
  libc.sync();
}

/** Orphans below this process become its children. */
export function becomeSubreaper(): void {
  assertOk("PR_SET_CHILD_SUBREAPER", libc.prctl(option.setChildSubreaper, 1n, 0n, 0n, 0n));
}

/** No set-user-id program can raise the privileges of this thread or its children again. */
export function setNoNewPrivileges(): void {
  assertOk("PR_SET_NO_NEW_PRIVS", libc.prctl(option.setNoNewPrivileges, 1n, 0n, 0n, 0n));
}

export function dropSupplementaryGroups(): void {
  assertOk("setgroups", libc.setgroups(0n, null));
}

/** Without this, a command of another user could not open `/dev/stdout`. */
export function chownDescriptor(fd: number, user: User): void {
  assertOk("fchown", libc.fchown(fd, user.uid, user.gid));
}

export function makeFifo(path: string, mode: number): void {
  assertOk("mkfifo", libc.mkfifo(ptr(Buffer.from(`${path}\0`)), mode));
}

export function replaceDescriptor(by: number, fd: number): void {
  assertOk("dup2", libc.dup2(by, fd));
}

/** Reaps a dead child. False: it is alive, or not a child. Must not be called for children of the runtime. */
export function reapChild(pid: number): boolean {
  const noHang = 1;
  return libc.waitpid(pid, null, noHang) === pid;
}

/** The argument is a number, or a buffer that the kernel reads or fills. Returns the result of the call. */
export function ioctl(fd: number, request: number, argument: number | Uint8Array): number {
  const value = typeof argument === "number" ? argument : ptr(argument);
  const result = libc.ioctl(fd, BigInt(request), BigInt(value));
  assertOk(`ioctl 0x${request.toString(16)}`, result);
  return result;
}

/** The number of unread bytes in a pipe. */
export function unreadBytes(fd: number): number {
  const unread = new Int32Array(1);
  const fionread = 0x541b;
  ioctl(fd, fionread, new Uint8Array(unread.buffer));
  return unread[0] ?? 0;
}

export type User = { uid: number; gid: number };

/** Runs `access` with the rights of `user` on files; only synchronous calls of this thread are covered. */
export function withUserRights<T>(user: User | undefined, access: () => T): T {
  if (user === undefined) return access();
  // The group is changed first and restored last: that needs the privilege that the user id gives up.
  const gid = libc.setfsgid(user.gid);
  const uid = libc.setfsuid(user.uid);
  try {
    return access();
  } finally {
    libc.setfsuid(uid);
    libc.setfsgid(gid);
  }
}

function assertOk(call: string, result: number): void {
  if (result < 0) throw new Error(`${call} failed`);
}
