/**
 * Writes the header of one member: ustar, preceded by a pax header for what does not fit.
 */
import {
  blockBytes,
  checksumOf,
  extended,
  field,
  type Member,
  nsOfSecond,
  padded,
  typeOf,
} from "./member.ts";

const [octal7, octal11] = [8 ** 7 - 1, 8 ** 11 - 1];

/** Returns whole blocks. */
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
