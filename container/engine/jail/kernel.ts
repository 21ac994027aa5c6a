/** System calls that build a jail, through libc. Each failure carries the name of the call and its errno. */
import { dlopen, FFIType, ptr, read } from "bun:ffi";
import { writeFileSync } from "node:fs";
import { constants } from "node:os";
import type { UserLimits } from "./jail-spec.ts";

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
  getrlimit: { args: [i32, pointer], returns: i32 },
  setfsuid: { args: [FFIType.u32], returns: i32 },
  setfsgid: { args: [FFIType.u32], returns: i32 },
  setrlimit: { args: [i32, pointer], returns: i32 },
  signal: { args: [i32, u64], returns: FFIType.i64 },
  syscall: {
    args: [FFIType.i64, FFIType.i64, FFIType.i64, FFIType.i64, FFIType.i64, FFIType.i64],
    returns: FFIType.i64,
  },
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
  const optional = (value: string | null) => (value === null ? null : text(value));
  const result = libc.mount(text(source), text(target), optional(type), flags, optional(data));
  check(`mount ${type ?? "bind"} on ${target}`, result);
}

/** Numbers of system calls that libc may lack; they have the same numbers everywhere. */
const call = { openTree: 428n, moveMount: 429n, mountSetattr: 442n } as const;
const currentFolder = -100n;
const emptyPath = 0x1000n;

/** Mounts a copy of `folder` on `target`, with ids as the map of a user namespace (a descriptor) says. */
export function mountMapped(folder: string, target: string, userNamespace: number): void {
  const [clone, closeOnExec] = [1n, 0o2000000n];
  const [nothing, source, destination] = [text(""), text(folder), text(target)];
  const addressOf = (buffer: Buffer) => BigInt(ptr(buffer));
  const tree = systemCall(`open_tree of ${folder}`, call.openTree, [
    currentFolder,
    addressOf(source),
    clone | closeOnExec,
  ]);
  try {
    const mapIds = 0x100000n;
    // struct mount_attr: attributes to set and to clear, propagation, user namespace.
    const attributes = Buffer.from(BigUint64Array.of(mapIds, 0n, 0n, BigInt(userNamespace)).buffer);
    const size = BigInt(attributes.length);
    const of = [BigInt(tree), addressOf(nothing), emptyPath, addressOf(attributes), size];
    systemCall(`mount_setattr of ${folder}`, call.mountSetattr, of);
    const fromEmptyPath = 4n;
    const move = [
      BigInt(tree),
      addressOf(nothing),
      currentFolder,
      addressOf(destination),
      fromEmptyPath,
    ];
    systemCall(`move_mount to ${target}`, call.moveMount, move);
  } finally {
    libc.close(tree);
  }
}

function systemCall(what: string, number: bigint, args: bigint[]): number {
  const [first = 0n, second = 0n, third = 0n, fourth = 0n, fifth = 0n] = args;
  return check(what, Number(libc.syscall(number, first, second, third, fourth, fifth)));
}

const detach = 2;

/** Makes `folder` the root of this mount namespace and detaches the old root. */
export function changeRoot(folder: string): void {
  process.chdir(folder);
  // The old root is stacked on the new one and unmounted: no folder inside has to hold it.
  check("pivot_root", libc.pivot_root(text("."), text(".")));
  check("umount of the old root", libc.umount2(text("."), detach));
  process.chdir("/");
}

const securityBits = 28;
const keepCapabilities = 1 << 2;

/**
 * Runs `work` with files created as another id, and every capability kept. An overlay remembers who mounted it, and
 * creates its own files as that id; the ids of the machine have no place in folders that show the ids of a sandbox.
 */
export function withFileIds<T>(id: number, work: () => T): T {
  prctl(securityBits, keepCapabilities);
  libc.setfsgid(id);
  libc.setfsuid(id);
  try {
    return work();
  } finally {
    libc.setfsuid(0);
    libc.setfsgid(0);
    prctl(securityBits, 0);
  }
}

const newNetwork = 0x40000000;

/** Swaps two files or folders of one file system atomically. */
export function exchangePaths(first: string, second: string): void {
  const [folder, exchange] = [-100, 2];
  const result = libc.renameat2(folder, text(first), folder, text(second), exchange);
  check(`exchange of ${first} and ${second}`, result);
}

/** Applies to the calling thread and to what it starts later; open sockets stay in their network. */
export function unshareNetwork(): void {
  check("unshare of the network", libc.unshare(newNetwork));
}

export function setHostName(name: string): void {
  const bytes = Buffer.from(name);
  check("sethostname", libc.sethostname(bytes, BigInt(bytes.length)));
}

export function prctl(option: number, value: number, third = 0): void {
  check(`prctl ${option}`, libc.prctl(option, BigInt(value), BigInt(third), 0n, 0n));
}

/** Sets the permitted and effective capabilities, and no inheritable ones. */
export function setCapabilities(mask: bigint): void {
  const version3 = 0x20080522;
  const header = new Uint32Array([version3, 0]);
  const [low, high] = [Number(mask & 0xffffffffn), Number(mask >> 32n)];
  check("capset", libc.capset(header, new Uint32Array([low, low, 0, high, high, 0])));
}

/**
 * Applies to the calling thread and to what it starts later. Needs no_new_privs. `program` is an array of struct
 * sock_filter.
 */
export function setSystemCallFilter(program: Uint8Array): void {
  const [setSeccomp, filterMode, stepBytes] = [22, 2, 8];
  // struct sock_fprog: the number of instructions, then (8-byte aligned) their address.
  const header = new DataView(new ArrayBuffer(16));
  header.setUint16(0, program.length / stepBytes, true);
  header.setBigUint64(8, BigInt(ptr(program)), true);
  prctl(setSeccomp, filterMode, ptr(header));
}

/** Restores the default action. Inside a PID namespace its first process only receives signals that it handles. */
export function resetSignalHandler(signal: number): void {
  const byDefault = 0n;
  check(`signal ${signal}`, Number(libc.signal(signal, byDefault)));
}

const userLimitNumbers = { processes: 6, pendingSignals: 11, messageQueueBytes: 12 } as const;
const unlimited = 0xffff_ffff_ffff_ffffn;

/** Raises only with CAP_SYS_RESOURCE, and only to `unlimited`; a number above the present limit changes nothing. */
export function limitUser(limits: UserLimits): void {
  for (const [name, number] of Object.entries(userLimitNumbers)) {
    const limit = limits[name as keyof UserLimits];
    if (limit === "inherited") continue;
    const both = new BigUint64Array(2);
    check(`getrlimit ${name}`, libc.getrlimit(number, both));
    const most = both[1] ?? unlimited;
    const next = limit === "unlimited" || BigInt(limit) < most ? limit : most;
    both.fill(next === "unlimited" ? unlimited : BigInt(next));
    check(`setrlimit ${name}`, libc.setrlimit(number, both));
  }
}

/** Opens a descriptor that only names a folder (O_PATH) and is closed on exec. */
export function openFolder(path: string): number {
  const onlyFolder = process.arch === "arm64" ? 0o40000 : 0o200000;
  const [onlyName, closeOnExec] = [0o10000000, 0o2000000];
  return check(`open ${path}`, libc.open(text(path), onlyName | onlyFolder | closeOnExec, 0));
}

/** Leaves the keyring of the user who started the engine. Kernels without keyrings refuse the call, which is fine. */
export function joinEmptyKeyring(): void {
  const keyctl = process.arch === "arm64" ? 219n : 250n;
  const joinSessionKeyring = 1n;
  libc.syscall(keyctl, joinSessionKeyring, 0n, 0n, 0n, 0n);
}

export function bringUpLoopback(): void {
  const [inet, datagram, closeOnExec] = [2, 2, 0o2000000];
  const [getFlags, setFlags, up] = [0x8913n, 0x8914n, 1];
  const fd = check("socket", libc.socket(inet, datagram | closeOnExec, 0));
  const request = Buffer.alloc(40);
  request.write("lo");
  try {
    check("reading the flags of lo", libc.ioctl(fd, getFlags, request));
    request.writeUInt16LE(request.readUInt16LE(16) | up, 16);
    check("raising lo", libc.ioctl(fd, setFlags, request));
  } finally {
    libc.close(fd);
  }
}

/** Lets every user of this network listen on low ports and send pings. */
export function openNetworkToAll(): void {
  const settings = "/proc/sys/net/ipv4";
  writeFileSync(`${settings}/ip_unprivileged_port_start`, "0");
  writeFileSync(`${settings}/ping_group_range`, "0 2147483647");
}

/** Passed as it is, not as a pointer, because a pointer does not protect its buffer from garbage collection. */
function text(value: string): Buffer {
  return Buffer.from(`${value}\0`);
}

/** Returns the result of a system call, or throws the error that it reports. */
export function check(what: string, result: number): number {
  if (result >= 0) return result;
  const errno = errorNumber();
  const name = Object.entries(constants.errno).find(([, number]) => number === errno)?.[0];
  throw new Error(`${what}: ${name ?? `errno ${errno}`}`);
}

export function errorNumber(): number {
  const location = libc.__errno_location();
  return location === null ? 0 : read.i32(location, 0);
}
