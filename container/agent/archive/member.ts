/**
 * Defines a member of a tar archive and the layout of its header, for reading and writing.
 * Paths are raw: one character is one byte.
 */
import { BerthError } from "../../../src/protocol/error-codes.ts";

export type Member = {
  path: string;
  kind: "file" | "folder" | "link" | "hard link";
  mode: number;
  uid: number;
  gid: number;
  /** Bytes of its contents. */
  size: number;
  modifiedNs: bigint;
  /** Where a symbolic link leads; for a hard link the path of the member that it names again. */
  linkTarget: string;
};

export const blockBytes = 512;

/** Offset and length of the fields of a header, in bytes. */
export const field = {
  name: [0, 100],
  mode: [100, 8],
  uid: [108, 8],
  gid: [116, 8],
  size: [124, 12],
  modified: [136, 12],
  checksum: [148, 8],
  type: [156, 1],
  linkName: [157, 100],
  magic: [257, 8],
  prefix: [345, 155],
} as const;

export const typeOf = { file: "0", "hard link": "1", link: "2", folder: "5" } as const;
export const extended = { next: "x", all: "g", longPath: "L", longSays: "K" } as const;

export const nsOfSecond = 1_000_000_000n;

/** Rounded up to whole blocks. */
export function padded(bytes: number): number {
  return Math.ceil(bytes / blockBytes) * blockBytes;
}

/** Counts the checksum field itself as blanks. A plain loop, because one archive may have millions of headers. */
export function checksumOf(header: Uint8Array): number {
  const [start, length] = field.checksum;
  let sum = 0x20 * length;
  for (let n = 0; n < blockBytes; n += 1) sum += header[n] ?? 0;
  for (let n = start; n < start + length; n += 1) sum -= header[n] ?? 0;
  return sum;
}

export function badArchive(what: string, hint?: string): BerthError {
  return new BerthError("bad_archive", `The archive ${what}.`, hint === undefined ? {} : { hint });
}
