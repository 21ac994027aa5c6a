/**
 * Owns what stands at a name of the checkout in this moment, and whether it is what git has under an id.
 * Follows no link, neither at the end nor on the way.
 */
import { createHash } from "node:crypto";
import {
  type BigIntStats,
  closeSync,
  constants,
  fstatSync,
  lstatSync,
  openSync,
  readlinkSync,
  readSync,
} from "node:fs";

/** As a tree has it; none: nothing is there. */
export type Entry = { mode: string; id: string } | undefined;

export type Standing =
  | { kind: "nothing" | "folder" | "other" }
  | { kind: "file" | "link"; entry: { mode: string; id: string }; stat: BigIntStats };

type Format = "sha1" | "sha256";

export function pathOf(top: string, name: string): Buffer {
  return Buffer.concat([Buffer.from(`${top}/`), Buffer.from(name, "latin1")]);
}

export function standing(path: Buffer, format: Format): Standing {
  const stat = look(path);
  if (stat === undefined) return { kind: "nothing" };
  if (stat.isDirectory()) return { kind: "folder" };
  if (stat.isSymbolicLink()) {
    const target = readlinkSync(path, { encoding: "buffer" });
    const hash = begun(format, BigInt(target.byteLength)).update(target).digest("hex");
    return { kind: "link", entry: { mode: "120000", id: hash }, stat };
  }
  if (!stat.isFile()) return { kind: "other" };
  const mode = (stat.mode & 0o100n) === 0n ? "100644" : "100755";
  return { kind: "file", entry: { mode, id: hashOf(path, format) }, stat };
}

export function isSame(found: Standing, entry: Entry): boolean {
  if (found.kind === "nothing" || entry === undefined) {
    return found.kind === "nothing" && entry === undefined;
  }
  if (found.kind !== "file" && found.kind !== "link") return false;
  return found.entry.mode === entry.mode && found.entry.id === entry.id;
}

/** Whether nobody has touched it since it was looked at. */
export function isUntouched(path: Buffer, found: Standing): boolean {
  const stat = look(path);
  if (found.kind === "nothing") return stat === undefined;
  if (found.kind !== "file" && found.kind !== "link") return false;
  const was = found.stat;
  return (
    stat !== undefined &&
    stat.ino === was.ino &&
    stat.size === was.size &&
    stat.mode === was.mode &&
    stat.mtimeNs === was.mtimeNs &&
    stat.ctimeNs === was.ctimeNs
  );
}

export function look(path: Buffer): BigIntStats | undefined {
  try {
    return lstatSync(path, { bigint: true, throwIfNoEntry: false });
  } catch (error) {
    // A part of the way is a file.
    if ((error as NodeJS.ErrnoException).code === "ENOTDIR") return undefined;
    throw error;
  }
}

const pieceBytes = 1024 * 1024;

function hashOf(path: Buffer, format: Format): string {
  const file = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  try {
    const hash = begun(format, fstatSync(file, { bigint: true }).size);
    const piece = Buffer.alloc(pieceBytes);
    for (let bytes = readSync(file, piece); bytes > 0; bytes = readSync(file, piece)) {
      hash.update(piece.subarray(0, bytes));
    }
    return hash.digest("hex");
  } finally {
    closeSync(file);
  }
}

function begun(format: Format, bytes: bigint) {
  return createHash(format).update(`blob ${bytes}\0`);
}
