/**
 * Owns the system calls that build a room, by foreign function from libc, each failure with its name and number.
 * Does not own their order or meaning: root.ts, network.ts and privileges.ts do.
 */
import { dlopen, FFIType, type Pointer, ptr, read } from "bun:ffi";
import { constants } from "node:os";

const { i32, u64, ptr: pointer } = FFIType;

const libc = dlopen("libc.so.6", {
  mount: { args: [pointer, pointer, pointer, u64, pointer], returns: i32 },
  umount2: { args: [pointer, i32], returns: i32 },
  pivot_root: { args: [pointer, pointer], returns: i32 },
  unshare: { args: [i32], returns: i32 },
  renameat2: { args: [i32, pointer, i32, pointer, FFIType.u32], returns: i32 },
  sethostname: { args: [pointer, u64], returns: i32 },
  prctl: { args: [i32, u64, u64, u64, u64], returns: i32 },
  capset: { args: [pointer, pointer], returns: i32 },
  setrlimit: { args: [i32, pointer], returns: i32 },
  signal: { args: [i32, u64], returns: FFIType.i64 },
  syscall: { args: [u64, u64, u64, u64, u64, u64], returns: FFIType.i64 },
  open: { args: [pointer, i32, i32], returns: i32 },
  socket: { args: [i32, i32, i32], returns: i32 },
  ioctl: { args: [i32, u64, pointer], returns: i32 },
  close: { args: [i32], returns: i32 },
  __errno_location: { args: [], returns: pointer },
}).symbols;

export const mountFlag = {
  readOnly: 1n,
  noSuid: 2n,
  noDev: 4n,
  noExec: 8n,
  remount: 32n,
  bind: 4096n,
  recursive: 16384n,
  private: 1n << 18n,
} as const;

export function mount(
  source: string,
  target: string,
  type: string | null,
  flags: bigint,
  data: string | null = null,
): void {
  const result = libc.mount(
    text(source),
    text(target),
    type === null ? null : text(type),
    flags,
    data === null ? null : text(data),
  );
  if (result !== 0) throw failure(`mount ${type ?? "bind"} on ${target}`);
}

const detach = 2;

/** Makes `folder` the root of this mount namespace and lets go of the old one. */
export function changeRoot(folder: string): void {
  process.chdir(folder);
  // Old root stacked on new root, then taken off: no folder inside is needed to hold it.
  if (libc.pivot_root(text("."), text(".")) !== 0) throw failure("pivot_root");
  if (libc.umount2(text("."), detach) !== 0) throw failure("umount of the old root");
  process.chdir("/");
}

const newNetwork = 0x40000000;

/** Two files or folders of one file system change places. */
export function exchange(one: string, other: string): void {
  const exchangeFlag = 2;
  const here = -100;
  const result = libc.renameat2(here, text(one), here, text(other), exchangeFlag);
  if (result !== 0) throw failure(`exchange ${one} and ${other}`);
}

/** Of the calling thread and of what it starts from then on; sockets that are open stay where they are. */
export function unshareNetwork(): void {
  if (libc.unshare(newNetwork) !== 0) throw failure("unshare of the network");
}

export function setHostName(name: string): void {
  const bytes = Buffer.from(name);
  if (libc.sethostname(ptr(bytes), BigInt(bytes.length)) !== 0) throw failure("sethostname");
}

export function prctl(option: number, value: number, ...rest: number[]): void {
  const [third = 0, fourth = 0, fifth = 0] = rest;
  const result = libc.prctl(option, BigInt(value), BigInt(third), BigInt(fourth), BigInt(fifth));
  if (result < 0) throw failure(`prctl ${option}`);
}

/** Permitted, effective and inheritable become exactly this set. */
export function setCapabilities(mask: bigint, inheritable: bigint): void {
  const version3 = 0x20080522;
  const header = new Uint32Array([version3, 0]);
  const [low, high] = [Number(mask & 0xffffffffn), Number(mask >> 32n)];
  const [inheritLow, inheritHigh] = [Number(inheritable & 0xffffffffn), Number(inheritable >> 32n)];
  const data = new Uint32Array([low, low, inheritLow, high, high, inheritHigh]);
  if (libc.capset(ptr(header), ptr(data)) !== 0) throw failure("capset");
}

/** Of the calling thread and of what it starts from then on. Needs no_new_privs. `program` is of struct sock_filter. */
export function setSystemCallFilter(program: Uint8Array): void {
  const [setSeccomp, filterMode, stepBytes] = [22, 2, 8];
  // struct sock_fprog: how many steps, then, at the next 8 bytes, where they are.
  const header = new DataView(new ArrayBuffer(16));
  header.setUint16(0, program.length / stepBytes, true);
  header.setBigUint64(8, BigInt(ptr(program)), true);
  prctl(setSeccomp, filterMode, ptr(header));
}

/** To the first process of a namespace those inside can send only signals that it handles. */
export function handleNot(signal: number): void {
  const byDefault = 0n;
  if (libc.signal(signal, byDefault) < 0) throw failure(`signal ${signal}`);
}

export function limitProcesses(count: number): void {
  const rlimitNproc = 6;
  const both = new BigUint64Array([BigInt(count), BigInt(count)]);
  if (libc.setrlimit(rlimitNproc, ptr(both)) !== 0) throw failure("setrlimit NPROC");
}

/** A descriptor that only names a folder, closed when a command is executed. */
export function openFolder(path: string): number {
  const { O_DIRECTORY } = openFlags;
  const fd = libc.open(text(path), openFlags.O_PATH | O_DIRECTORY | openFlags.O_CLOEXEC, 0);
  if (fd < 0) throw failure(`open ${path}`);
  return fd;
}

/** Away from the keys of whoever started the engine. Kernels without keys have nothing to leave. */
export function leaveKeyring(): void {
  const keyctl = process.arch === "arm64" ? 219n : 250n;
  const joinSessionKeyring = 1n;
  libc.syscall(keyctl, joinSessionKeyring, 0n, 0n, 0n, 0n);
}

export function loopbackUp(): void {
  const [inet, datagram, closeOnExec] = [2, 2, 0o2000000];
  const [getFlags, setFlags, up] = [0x8913n, 0x8914n, 1];
  const fd = libc.socket(inet, datagram | closeOnExec, 0);
  if (fd < 0) throw failure("socket");
  const request = Buffer.alloc(40);
  request.write("lo");
  const got = libc.ioctl(fd, getFlags, ptr(request));
  request.writeUInt16LE(request.readUInt16LE(16) | up, 16);
  const set = got === 0 ? libc.ioctl(fd, setFlags, ptr(request)) : got;
  const failed = set === 0 ? undefined : failure("raising lo");
  libc.close(fd);
  if (failed !== undefined) throw failed;
}

const openFlags = {
  O_PATH: 0o10000000,
  O_CLOEXEC: 0o2000000,
  O_DIRECTORY: process.arch === "arm64" ? 0o40000 : 0o200000,
} as const;

// Held beyond the call that reads it: a pointer does not keep its buffer from being collected.
function text(value: string): Pointer {
  const bytes = Buffer.from(`${value}\0`);
  held.push(bytes);
  if (held.length > heldMax) held.shift();
  return ptr(bytes);
}

const held: Buffer[] = [];
const heldMax = 64;

function failure(what: string): Error {
  const at = libc.__errno_location();
  const errno = at === null ? 0 : read.i32(at, 0);
  const name = Object.entries(constants.errno).find(([, number]) => number === errno)?.[0];
  return new Error(`${what}: ${name ?? `errno ${errno}`}`);
}
