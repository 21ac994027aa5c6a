/** Reads and writes the headers of a tar archive. Paths are raw: one character is one byte. */
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
const field = {
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

const typeOf = { file: "0", "hard link": "1", link: "2", folder: "5" } as const;
export const extended = { next: "x", all: "g", longPath: "L", longSays: "K" } as const;

const nsOfSecond = 1_000_000_000n;

/** Rounded up to whole blocks. */
export function padded(bytes: number): number {
  return Math.ceil(bytes / blockBytes) * blockBytes;
}

/** Counts the checksum field itself as blanks. A plain loop, because one archive may have millions of headers. */
function checksumOf(header: Uint8Array): number {
  const [start, length] = field.checksum;
  let sum = 0x20 * length;
  for (let n = 0; n < blockBytes; n += 1) sum += header[n] ?? 0;
  for (let n = start; n < start + length; n += 1) sum -= header[n] ?? 0;
  return sum;
}

export type Records = Map<string, string>;

const sumOfZeros = checksumOf(Buffer.alloc(blockBytes));

type Header = { member: Member; type: string };

/** Reads ustar, pax and the long names of GNU tar. Undefined for a block of zeros. */
export function headerIn(block: Buffer): Header | undefined {
  const sum = checksumOf(block);
  if (sum === sumOfZeros && block.every((byte) => byte === 0)) return undefined;
  const stated = numberIn(block, field.checksum);
  if (stated !== sum && stated !== signedChecksumOf(block)) {
    throw badArchive("is not a tar, or is broken: the checksum of a header is wrong");
  }
  const type = textIn(block, field.type) || typeOf.file;
  const magic = textIn(block, [field.magic[0], 6]);
  // The GNU format has other fields where ustar has the prefix.
  const prefix = magic === "ustar" ? textIn(block, field.prefix) : "";
  const name = textIn(block, field.name);
  return {
    type,
    member: {
      path: prefix === "" ? name : `${prefix}/${name}`,
      kind: "file",
      mode: numberIn(block, field.mode) & 0o7777,
      uid: numberIn(block, field.uid),
      gid: numberIn(block, field.gid),
      size: numberIn(block, field.size),
      modifiedNs: BigInt(numberIn(block, field.modified)) * nsOfSecond,
      linkTarget: textIn(block, field.linkName),
    },
  };
}

/** Records take precedence over the header. Throws for kinds that cannot be unpacked. */
export function memberOf({ member, type }: Header, records: Records): Member {
  if (records.has(sparse)) throw badArchive("holds a sparse file, which is not supported");
  const path = records.get("path") ?? member.path;
  const kind = kindOf(type, path);
  const size = sizeOf(records.get("size") ?? member.size);
  const time = records.get("mtime");
  return {
    ...member,
    path,
    kind,
    linkTarget: records.get("linkpath") ?? member.linkTarget,
    size: kind === "file" ? size : 0,
    modifiedNs: time === undefined ? member.modifiedNs : nsIn(time),
  };
}

const kinds: Record<string, Member["kind"]> = {
  [typeOf.file]: "file",
  "7": "file",
  [typeOf["hard link"]]: "hard link",
  [typeOf.link]: "link",
  [typeOf.folder]: "folder",
};

const refused: Record<string, string> = {
  "3": "a device",
  "4": "a device",
  "6": "a named pipe",
  S: "a sparse file",
};

function kindOf(type: string, path: string): Member["kind"] {
  const kind = kinds[type];
  if (kind === undefined) {
    const what = refused[type] ?? `a member of the kind ${JSON.stringify(type)}`;
    throw badArchive(`holds ${what}, which cannot be unpacked`);
  }
  // The oldest tars mark folders in this way.
  return kind === "file" && path.endsWith("/") ? "folder" : kind;
}

const usedKeys = ["path", "linkpath", "size", "mtime"];
const sparse = "GNU.sparse.";

/** Reads the body of a pax header. Leaves out keys that are not used here, because a header may have any number of them. */
export function recordsIn(body: Buffer): Records {
  const records: Records = new Map();
  for (let start = 0; start < body.length; ) {
    const space = body.indexOf(0x20, start);
    const length = Number(body.toString("latin1", start, space < 0 ? start : space));
    const record = body.toString("latin1", space + 1, start + length);
    const equals = record.indexOf("=");
    if (
      space < 0 ||
      !(length > 0) ||
      start + length > body.length ||
      equals < 0 ||
      !record.endsWith("\n")
    ) {
      throw badArchive("is broken: a pax header is malformed");
    }
    const key = record.slice(0, equals);
    if (key.startsWith(sparse)) records.set(sparse, "");
    else if (usedKeys.includes(key)) records.set(key, record.slice(equals + 1, -1));
    start += length;
  }
  return records;
}

export function longNameIn(type: string, body: Buffer): [key: string, value: string] {
  const end = body.indexOf(0);
  const name = body.toString("latin1", 0, end < 0 ? body.length : end);
  return [type === extended.longPath ? "path" : "linkpath", name];
}

function sizeOf(stated: string | number): number {
  const size = Number(stated);
  if (!Number.isSafeInteger(size) || size < 0)
    throw badArchive("is broken: a size is not a number");
  return size;
}

function nsIn(text: string): bigint {
  const [, sign, seconds = "0", fraction = ""] = /^(-?)(\d{1,12})(?:\.(\d*))?$/.exec(text) ?? [];
  if (sign === undefined) throw badArchive("is broken: a time is not a number");
  const ns = BigInt(seconds) * nsOfSecond + BigInt(fraction.slice(0, 9).padEnd(9, "0"));
  return sign === "-" ? -ns : ns;
}

function textIn(block: Buffer, [start, length]: readonly [number, number]): string {
  const end = block.indexOf(0, start);
  return block.toString("latin1", start, end < 0 || end > start + length ? start + length : end);
}

/** Octal, or the GNU form of a number that does not fit: the first bit set, then the number as bytes. */
function numberIn(block: Buffer, [start, length]: readonly [number, number]): number {
  const first = block[start] ?? 0;
  if ((first & 0x80) !== 0) return bytesIn(block.subarray(start, start + length));
  const text = textIn(block, [start, length]).trim();
  if (!/^[0-7]*$/.test(text)) throw badArchive("is not a tar, or is broken: a header is malformed");
  return text === "" ? 0 : Number.parseInt(text, 8);
}

function bytesIn(bytes: Buffer): number {
  const bits = BigInt(bytes.length * 8 - 1);
  const all = BigInt(`0x${bytes.toString("hex")}`) & ((1n << bits) - 1n);
  return Number(BigInt.asIntN(Number(bits), all));
}

/** Old programs summed signed bytes. */
function signedChecksumOf(block: Buffer): number {
  const high = block.filter((byte, index) => byte > 127 && !isChecksum(index)).length;
  return checksumOf(block) - 256 * high;
}

function isChecksum(index: number): boolean {
  return index >= field.checksum[0] && index < field.checksum[0] + field.checksum[1];
}

const [octal7, octal11] = [8 ** 7 - 1, 8 ** 11 - 1];

/** Writes ustar, preceded by a pax header for what does not fit. Returns whole blocks. */
export function headerOf(member: Member): Buffer {
  const records = recordsOf(member);
  const own = block(member, typeOf[member.kind]);
  if (records.length === 0) return own;
  const size = records.length;
  const name = `PaxHeaders/${member.path.replace(/\/+$/, "").split("/").at(-1) ?? ""}`;
  const extendedHeader: Member = { ...member, path: name, linkTarget: "", mode: 0o644, size };
  const body = Buffer.alloc(padded(size));
  records.copy(body);
  return Buffer.concat([block(extendedHeader, extended.next), body, own]);
}

export const endOfArchive = Buffer.alloc(2 * blockBytes);

function recordsOf({ path, linkTarget: says, size, uid, gid, modifiedNs }: Member): Buffer {
  const records: Buffer[] = [];
  const add = (key: string, value: string) => records.push(recordOf(key, value));
  if (path.length > field.name[1]) add("path", path);
  if (says.length > field.linkName[1]) add("linkpath", says);
  if (size > octal11) add("size", String(size));
  if (uid > octal7) add("uid", String(uid));
  if (gid > octal7) add("gid", String(gid));
  const fits = modifiedNs >= 0n && modifiedNs <= BigInt(octal11) * nsOfSecond;
  if (!fits || modifiedNs % nsOfSecond !== 0n) add("mtime", secondsText(modifiedNs));
  return Buffer.concat(records);
}

/** The length that precedes a record includes its own digits. */
function recordOf(key: string, value: string): Buffer {
  const rest = ` ${key}=${value}\n`;
  let length = rest.length;
  while (length < rest.length + String(length).length) length = rest.length + String(length).length;
  return Buffer.from(`${length}${rest}`, "latin1");
}

function secondsText(ns: bigint): string {
  const size = ns < 0n ? -ns : ns;
  const rest = String(size % nsOfSecond).padStart(9, "0");
  return `${ns < 0n ? "-" : ""}${size / nsOfSecond}.${rest}`;
}

function block(member: Member, type: string): Buffer {
  const header = Buffer.alloc(blockBytes);
  const text = ([start, length]: readonly [number, number], value: string) =>
    header.write(value.slice(0, length), start, "latin1");
  const number = ([start, length]: readonly [number, number], value: number) => {
    const digits = length - 1;
    const fitting = Math.min(Math.max(value, 0), 8 ** digits - 1);
    header.write(fitting.toString(8).padStart(digits, "0"), start, "latin1");
  };
  text(field.name, member.path);
  number(field.mode, member.mode);
  number(field.uid, member.uid);
  number(field.gid, member.gid);
  number(field.size, member.size);
  number(field.modified, Number(member.modifiedNs / nsOfSecond));
  text(field.type, type);
  text(field.linkName, member.linkTarget);
  text(field.magic, "ustar\x0000");
  const [start] = field.checksum;
  header.write(`${checksumOf(header).toString(8).padStart(6, "0")}\0 `, start, "latin1");
  return header;
}

export function badArchive(what: string, hint?: string): BerthError {
  return new BerthError("bad_archive", `The archive ${what}.`, hint === undefined ? {} : { hint });
}
