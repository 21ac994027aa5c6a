/**
 * A program of a few hundred bytes that makes a list of system calls and then becomes another program. Nothing else can
 * enter a user namespace: the kernel lets only processes of a single thread do so, and the runtime of the agent has
 * several. It needs no library, so it runs before any root file system is ready and in images without one.
 *
 * It reads the list from descriptor 3 into memory at a fixed address. Its own arguments and environment are those of
 * the program that it becomes.
 */

/** An argument that is text or bytes is passed as its address. */
export type SystemCall = readonly [name: keyof typeof numbers, ...arguments: Argument[]];
type Argument = number | string | Uint8Array;

/** Numbers of the calls on each architecture. */
const numbers = {
  chdir: { x64: 80, arm64: 49 },
  close_range: { x64: 436, arm64: 436 },
  prctl: { x64: 157, arm64: 167 },
  read: { x64: 0, arm64: 63 },
  setgroups: { x64: 116, arm64: 159 },
  setns: { x64: 308, arm64: 268 },
  setresgid: { x64: 119, arm64: 149 },
  setresuid: { x64: 117, arm64: 147 },
  unshare: { x64: 272, arm64: 97 },
  write: { x64: 1, arm64: 64 },
} as const;

export const listFd = 3;
type Architecture = "x64" | "arm64";

const codeAddress = 0x10000000;
const listAddress = 0x20000000;
/** Enough for two paths, and the calls around them. */
const listBytesMax = 0x10000;
const headerWords = 3;
const wordsPerCall = 6;

/**
 * The program, as assembled from this:
 *
 *     start: read(3, list, 0x10000)             list: count, path, error descriptor, then the calls
 *     next:  if count == 0 goto last
 *            result = call[0](call[1], … call[5])
 *            if result < 0 goto fail
 *            count -= 1; call += 1; goto next
 *     last:  if path == 0 exit(0)
 *            result = execve(path, own arguments, own environment)
 *     fail:  list[0] = -result; list[1] = count; write(error descriptor, list, 16)
 *            exit(127)
 */
const code = {
  x64: bytesOf(
    "4989e4 31c0 bf03000000 be00000020 ba00000100 0f05 bb00000020 4c8b2b 4c8d7318" +
      "4d85ed 7427 498b06 498b7e08 498b7610 498b5618 4d8b5620 4d8b4628 0f05 4885c0 7829 4983c630 49ffcd ebd4" +
      "31c0 488b7b08 4885ff 7437 498d742408 498b1424 498d54d410 b83b000000 0f05" +
      "48f7d8 488903 4c896b08 488b7b10 4889de ba10000000 b801000000 0f05 b87f000000 89c7 b83c000000 0f05",
  ),
  arm64: wordsOf(
    "910003f3 d2800060 d2a40001 d2a00022 d28007e8 d4000001 d2a40014 f9400295 91006296 b4000155 " +
      "f94002c8 a94086c0 a9418ec2 f94016c4 d4000001 b7f80180 9100c2d6 d10006b5 17fffff7 f9400680 " +
      "b40001e0 f9400262 91002261 8b020c22 91002042 d2801ba8 d4000001 cb0003e0 a9005680 f9400a80 " +
      "aa1403e1 d2800202 d2800808 d4000001 d2800fe0 d2800ba8 d4000001",
  ),
} as const;

/** Skips the call that reads the list. */
const codeOfSudo = {
  x64: Buffer.concat([code.x64.subarray(0, 3), code.x64.subarray(0x16)]),
  arm64: Buffer.concat([code.arm64.subarray(0, 4), code.arm64.subarray(0x18)]),
} as const;

/** The program as an ELF file for this architecture. */
export function callListProgram(architecture = ownArchitecture()): Uint8Array {
  return elfFile(architecture, code[architecture], new Uint8Array());
}

/** A program that becomes root, for a file with the set-user-id bit, and runs `script` with its own arguments. */
export function sudoProgram(script: string, architecture = ownArchitecture()): Uint8Array {
  const calls: SystemCall[] = [
    ["setgroups", 0, 0],
    ["setresgid", 0, 0, 0],
    ["setresuid", 0, 0, 0],
  ];
  const list = encodeCallList({ calls, path: script, errorFd: -1 }, architecture);
  return elfFile(architecture, codeOfSudo[architecture], list);
}

function elfFile(architecture: Architecture, text: Uint8Array, list: Uint8Array): Uint8Array {
  const [headerBytes, segmentBytes, segments] = [64, 56, 3];
  const offset = headerBytes + segments * segmentBytes;
  const codeBytes = offset + text.length;
  // The largest page of these architectures: each segment begins on one.
  const page = 0x10000;
  const file = Buffer.alloc(list.length === 0 ? codeBytes : page + list.length);
  const [loaded, stack] = [1, 0x6474e551];
  const [executable, writable, readable] = [1, 2, 4];
  file.set([0x7f, 0x45, 0x4c, 0x46, 2, 1, 1]);
  file.writeUInt16LE(2, 16);
  file.writeUInt16LE(architecture === "x64" ? 62 : 183, 18);
  file.writeUInt32LE(1, 20);
  file.writeBigUInt64LE(BigInt(codeAddress + offset), 24);
  file.writeBigUInt64LE(BigInt(headerBytes), 32);
  [headerBytes, segmentBytes, segments].forEach((value, index) => {
    file.writeUInt16LE(value, 52 + index * 2);
  });
  const segment = (index: number, type: number, flags: number, words: number[]) => {
    const start = headerBytes + index * segmentBytes;
    file.writeUInt32LE(type, start);
    file.writeUInt32LE(flags, start + 4);
    // Offset, virtual and physical address, bytes in the file and in memory, alignment.
    words.forEach((word, position) => {
      file.writeBigUInt64LE(BigInt(word), start + 8 + position * 8);
    });
  };
  const codeWords = [0, codeAddress, codeAddress, codeBytes, codeBytes, page];
  const listWords = [page, listAddress, listAddress, list.length, listBytesMax, page];
  segment(0, loaded, readable | executable, codeWords);
  segment(1, loaded, readable | writable, listWords);
  segment(2, stack, readable | writable, [0, 0, 0, 0, 0, 16]);
  file.set(text, offset);
  if (list.length > 0) file.set(list, page);
  return file;
}

export type CallList = {
  calls: readonly SystemCall[];
  /** The program to become; left out: the process ends. */
  path?: string;
  /** Where a failure is written, see `readFailure`. Nothing is written there otherwise. */
  errorFd: number;
};

export function encodeCallList(
  { calls, path, errorFd }: CallList,
  architecture = ownArchitecture(),
): Uint8Array {
  const data: Uint8Array[] = [];
  let dataAddress = listAddress + (headerWords + calls.length * wordsPerCall) * 8;
  const wordOf = (value: Argument): bigint => {
    if (typeof value === "number") return BigInt.asUintN(64, BigInt(value));
    const bytes = typeof value === "string" ? Buffer.from(`${value}\0`) : value;
    const padded = Buffer.alloc(Math.ceil(bytes.length / 8) * 8);
    padded.set(bytes);
    data.push(padded);
    const address = dataAddress;
    dataAddress += padded.length;
    return BigInt(address);
  };
  const words = [BigInt(calls.length), path === undefined ? 0n : wordOf(path), BigInt(errorFd)];
  for (const [name, ...args] of calls) {
    const call = [BigInt(numbers[name][architecture]), ...args.map(wordOf)];
    words.push(...call, ...Array<bigint>(wordsPerCall - call.length).fill(0n));
  }
  const list = Buffer.concat([new Uint8Array(BigUint64Array.from(words).buffer), ...data]);
  if (list.length > listBytesMax)
    throw Object.assign(new Error("path too long"), { code: "ENAMETOOLONG" });
  return list;
}

/** Reads what the program wrote to `errorFd`: which call failed, undefined for the program to become, and how. */
export function readFailure(
  { calls }: CallList,
  written: Uint8Array,
): { call: SystemCall | undefined; errno: number } | undefined {
  if (written.length < 16) return undefined;
  const view = new DataView(written.buffer, written.byteOffset);
  const left = Number(view.getBigUint64(8, true));
  return {
    call: left === 0 ? undefined : calls[calls.length - left],
    errno: Number(view.getBigUint64(0, true)),
  };
}

function ownArchitecture(): Architecture {
  const { arch } = process;
  if (arch === "x64" || arch === "arm64") return arch;
  throw new Error(`There is no system call table for ${arch}.`);
}

function bytesOf(hex: string): Uint8Array {
  return Buffer.from(hex.replaceAll(" ", ""), "hex");
}

function wordsOf(hex: string): Uint8Array {
  const words = hex.split(" ").map((word) => Number.parseInt(word, 16));
  return new Uint8Array(Uint32Array.from(words).buffer);
}
