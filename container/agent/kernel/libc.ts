/**
 * Owns the system calls that the runtime does not offer, by foreign function from libc.
 * Does not own what they are for: each caller says why it needs one. Knows nothing of sandboxes.
 */
import { dlopen, FFIType, ptr } from "bun:ffi";

const { i32, u32, u64, ptr: pointer } = FFIType;

const libc = dlopen("libc.so.6", {
  prctl: { args: [i32, u64, u64, u64, u64], returns: i32 },
  pipe2: { args: [pointer, i32], returns: i32 },
  fchown: { args: [i32, u32, u32], returns: i32 },
  memfd_create: { args: [pointer, u32], returns: i32 },
  mkfifo: { args: [pointer, u32], returns: i32 },
  dup2: { args: [i32, i32], returns: i32 },
  waitpid: { args: [i32, pointer, i32], returns: i32 },
  setfsuid: { args: [u32], returns: i32 },
  setfsgid: { args: [u32], returns: i32 },
  setgroups: { args: [u64, pointer], returns: i32 },
  ioctl: { args: [i32, u64, u64], returns: i32 },
}).symbols;

const option = { setDumpable: 4, setChildSubreaper: 36, setNoNewPrivileges: 38 } as const;

/** Nobody of the same user may then read this process's environment or memory, or trace it. */
export function hideFromOthers(): void {
  demand("PR_SET_DUMPABLE", libc.prctl(option.setDumpable, 0n, 0n, 0n, 0n));
}

/** Orphans below this process become its children. */
export function adoptOrphans(): void {
  demand("PR_SET_CHILD_SUBREAPER", libc.prctl(option.setChildSubreaper, 1n, 0n, 0n, 0n));
}

/** Of the calling thread and all that it starts: no set-user-id program raises it again. */
export function refuseNewPrivileges(): void {
  demand("PR_SET_NO_NEW_PRIVS", libc.prctl(option.setNoNewPrivileges, 1n, 0n, 0n, 0n));
}

export function leaveAllGroups(): void {
  demand("setgroups", libc.setgroups(0n, null));
}

const closeOnExec = 0o2000000;
const ends = new Int32Array(2);

/** A pipe, read end first; no child inherits it unless it is handed over by name. */
export function openPipe(): [number, number] {
  demand("pipe2", libc.pipe2(ptr(ends), closeOnExec));
  const [read, write] = ends;
  if (read === undefined || write === undefined) throw new Error("pipe2 gave no descriptors");
  return [read, write];
}

/** Without it `/dev/stdout` could not be opened by a command of another user. */
export function giveDescriptor(fd: number, user: User): void {
  demand("fchown", libc.fchown(fd, user.uid, user.gid));
}

const memoryName = Buffer.from("berth\0");

/** A file in memory, gone with its last descriptor. */
export function openMemory(): number {
  const memoryCloseOnExec = 1;
  const fd = libc.memfd_create(ptr(memoryName), memoryCloseOnExec);
  demand("memfd_create", fd);
  return fd;
}

/** A pipe with a name. */
export function makeFifo(path: string, mode: number): void {
  demand("mkfifo", libc.mkfifo(ptr(Buffer.from(`${path}\0`)), mode));
}

export function replaceDescriptor(by: number, fd: number): void {
  demand("dup2", libc.dup2(by, fd));
}

/** Collects a dead child; false: it lives, or is no child. Must not be called for children of the runtime. */
export function collectChild(pid: number): boolean {
  const doNotWait = 1;
  return libc.waitpid(pid, null, doNotWait) === pid;
}

/** A device's own call; the argument is a number, or a buffer that the kernel reads or fills. Answers what it answers. */
export function controlDevice(fd: number, request: number, argument: number | Uint8Array): number {
  const value = typeof argument === "number" ? argument : ptr(argument);
  const result = libc.ioctl(fd, BigInt(request), BigInt(value));
  demand(`ioctl 0x${request.toString(16)}`, result);
  return result;
}

/** How many bytes lie in a pipe, unread. */
export function bytesIn(fd: number): number {
  const unread = new Int32Array(1);
  const ask = 0x541b;
  controlDevice(fd, ask, new Uint8Array(unread.buffer));
  return unread[0] ?? 0;
}

export type User = { uid: number; gid: number };

/** Looks at files with the rights of `user`; only synchronous calls of this thread are covered. */
export function withRightsOf<T>(user: User | undefined, look: () => T): T {
  if (user === undefined) return look();
  // The group first and back last: it needs the privilege that the user id gives up.
  const gid = libc.setfsgid(user.gid);
  const uid = libc.setfsuid(user.uid);
  try {
    return look();
  } finally {
    libc.setfsuid(uid);
    libc.setfsgid(gid);
  }
}

function demand(call: string, result: number): void {
  if (result < 0) throw new Error(`${call} failed`);
}
