/**
 * Reads the headers of members: ustar, pax and the long names of GNU tar. Throws for broken headers and for kinds of
 * members that are not supported. See member-paths.ts for which paths are allowed.
 */
import {
  badArchive,
  blockBytes,
  checksumOf,
  extended,
  field,
  type Member,
  nsOfSecond,
  typeOf,
} from "./member.ts";

export type Records = Map<string, string>;

const sumOfZeros = checksumOf(Buffer.alloc(blockBytes));

type Header = { member: Member; type: string };

/** Undefined for a block of zeros. */
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
