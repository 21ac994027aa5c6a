/**
 * Owns what one member of a tar is, and the numbers and names of its header as both directions know them.
 * Does not own reading (header-read.ts) nor writing it (header-write.ts). Names are raw, one character a byte.
 */
import { BerthError } from "../../../src/protocol/error-codes.ts";

export type Member = {
  path: string;
  kind: "file" | "folder" | "link" | "hard link";
  mode: number;
  uid: number;
  gid: number;
  /** Of its contents. */
  size: number;
  modifiedNs: bigint;
  /** What a link says; of a hard link, the member that it is another name of. */
  says: string;
};

export const blockBytes = 512;

/** One byte each: name, offset and length of the fields of a header. */
export const field = {
  name: [0, 100],
  mode: [100, 8],
  uid: [108, 8],
  gid: [116, 8],
  size: [124, 12],
  modified: [136, 12],
  checksum: [148, 8],
  type: [156, 1],
  says: [157, 100],
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

/** As if its own field were blank. Millions of headers come in one archive: a plain loop takes a tenth of others. */
export function checksumOf(header: Uint8Array): number {
  const [start, length] = field.checksum;
  let sum = 0x20 * length;
  for (let at = 0; at < blockBytes; at += 1) sum += header[at] ?? 0;
  for (let at = start; at < start + length; at += 1) sum -= header[at] ?? 0;
  return sum;
}

export function badArchive(what: string, hint?: string): BerthError {
  return new BerthError("bad_archive", `the archive ${what}`, hint === undefined ? {} : { hint });
}
