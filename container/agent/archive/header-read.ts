/**
 * Owns reading headers of members: ustar, pax and the long names of GNU; what is broken or of another kind throws.
 * Does not own which members may be unpacked (allowed.ts).
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

export type Header = { member: Member; type: string };

/** Undefined: a block of zeros. */
export function headerIn(block: Buffer): Header | undefined {
  const sum = checksumOf(block);
  if (sum === sumOfZeros && block.every((byte) => byte === 0)) return undefined;
  const told = numberIn(block, field.checksum);
  if (told !== sum && told !== signedChecksumOf(block)) {
    throw badArchive("is no tar, or is broken: the checksum of a header is wrong");
  }
  const type = textIn(block, field.type) || typeOf.file;
  const magic = textIn(block, [field.magic[0], 6]);
  // In GNU's own form other fields stand where ustar has the prefix.
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
      says: textIn(block, field.says),
    },
  };
}

/** What the records say goes before what the header says. Throws for kinds that nobody may unpack. */
export function memberOf({ member, type }: Header, records: Records): Member {
  if (records.has(sparse)) throw badArchive("holds a sparse file, which is not taken");
  const path = records.get("path") ?? member.path;
  const kind = kindOf(type, path);
  const size = sizeOf(records.get("size") ?? member.size);
  const time = records.get("mtime");
  return {
    ...member,
    path,
    kind,
    says: records.get("linkpath") ?? member.says,
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
  "6": "a pipe with a name",
  S: "a sparse file",
};

function kindOf(type: string, path: string): Member["kind"] {
  const kind = kinds[type];
  if (kind === undefined) {
    const what = refused[type] ?? `a member of the kind ${JSON.stringify(type)}`;
    throw badArchive(`holds ${what}, which is not unpacked`);
  }
  // As the oldest tars tell folders.
  return kind === "file" && path.endsWith("/") ? "folder" : kind;
}

const meant = ["path", "linkpath", "size", "mtime"];
const sparse = "GNU.sparse.";

/** Of the body of a pax header; what means nothing here is left out: headers may name as many as they like. */
export function recordsIn(body: Buffer): Records {
  const records: Records = new Map();
  for (let at = 0; at < body.length; ) {
    const space = body.indexOf(0x20, at);
    const length = Number(body.toString("latin1", at, space < 0 ? at : space));
    const record = body.toString("latin1", space + 1, at + length);
    const equals = record.indexOf("=");
    if (
      space < 0 ||
      !(length > 0) ||
      at + length > body.length ||
      equals < 0 ||
      !record.endsWith("\n")
    ) {
      throw badArchive("is broken: a pax header is malformed");
    }
    const key = record.slice(0, equals);
    if (key.startsWith(sparse)) records.set(sparse, "");
    else if (meant.includes(key)) records.set(key, record.slice(equals + 1, -1));
    at += length;
  }
  return records;
}

export function longNameIn(type: string, body: Buffer): [key: string, value: string] {
  const end = body.indexOf(0);
  const name = body.toString("latin1", 0, end < 0 ? body.length : end);
  return [type === extended.longPath ? "path" : "linkpath", name];
}

function sizeOf(told: string | number): number {
  const size = Number(told);
  if (!Number.isSafeInteger(size) || size < 0) throw badArchive("is broken: a size is no number");
  return size;
}

function nsIn(text: string): bigint {
  const [, sign, whole = "0", part = ""] = /^(-?)(\d{1,12})(?:\.(\d*))?$/.exec(text) ?? [];
  if (sign === undefined) throw badArchive("is broken: a time is no number");
  const ns = BigInt(whole) * nsOfSecond + BigInt(part.slice(0, 9).padEnd(9, "0"));
  return sign === "-" ? -ns : ns;
}

function textIn(block: Buffer, [at, length]: readonly [number, number]): string {
  const end = block.indexOf(0, at);
  return block.toString("latin1", at, end < 0 || end > at + length ? at + length : end);
}

/** Octal, or as GNU writes what does not fit: the first bit set, then the number as bytes. */
function numberIn(block: Buffer, [at, length]: readonly [number, number]): number {
  const first = block[at] ?? 0;
  if ((first & 0x80) !== 0) return bytesIn(block.subarray(at, at + length));
  const text = textIn(block, [at, length]).trim();
  if (!/^[0-7]*$/.test(text)) throw badArchive("is no tar, or is broken: a header is malformed");
  return text === "" ? 0 : Number.parseInt(text, 8);
}

function bytesIn(bytes: Buffer): number {
  const bits = BigInt(bytes.length * 8 - 1);
  const all = BigInt(`0x${bytes.toString("hex")}`) & ((1n << bits) - 1n);
  return Number(BigInt.asIntN(Number(bits), all));
}

/** As old programs counted. */
function signedChecksumOf(block: Buffer): number {
  const high = block.filter((byte, at) => byte > 127 && !isChecksum(at)).length;
  return checksumOf(block) - 256 * high;
}

function isChecksum(at: number): boolean {
  return at >= field.checksum[0] && at < field.checksum[0] + field.checksum[1];
}
