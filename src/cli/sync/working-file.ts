/** Reads what is at a path of the checkout, and compares it with an entry of a git tree. Never follows a link. */
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
import type { ObjectFormat } from "./object-store.ts";

/** The mode and object id in a tree; undefined: no such file. */
export type FileEntry = { mode: string; id: string } | undefined;

export type WorkingFile =
  | { kind: "nothing" | "folder" | "other" }
  | { kind: "file" | "link"; entry: NonNullable<FileEntry>; stat: BigIntStats };

export function toPath(top: string, name: string): Buffer {
  return Buffer.concat([Buffer.from(`${top}/`), Buffer.from(name, "latin1")]);
}

/** The names of the folders above a name, the topmost first. */
export function parentFolders(name: string): string[] {
  const parts = name.split("/").slice(0, -1);
  return parts.map((_, index) => parts.slice(0, index + 1).join("/"));
}

export function readWorkingFile(path: Buffer, format: ObjectFormat): WorkingFile {
  const stat = lstatIfExists(path);
  if (stat === undefined) return { kind: "nothing" };
  if (stat.isDirectory()) return { kind: "folder" };
  if (stat.isSymbolicLink()) {
    const target = readlinkSync(path, { encoding: "buffer" });
    const hash = startBlobHash(format, BigInt(target.byteLength)).update(target).digest("hex");
    return { kind: "link", entry: { mode: "120000", id: hash }, stat };
  }
  if (!stat.isFile()) return { kind: "other" };
  const mode = (stat.mode & 0o100n) === 0n ? "100644" : "100755";
  return { kind: "file", entry: { mode, id: hashFile(path, format) }, stat };
}

export function matchesEntry(found: WorkingFile, entry: FileEntry): boolean {
  if (found.kind === "nothing" || entry === undefined) {
    return found.kind === "nothing" && entry === undefined;
  }
  if (found.kind !== "file" && found.kind !== "link") return false;
  return found.entry.mode === entry.mode && found.entry.id === entry.id;
}

/** Whether the file is unchanged since `found` was read. */
export function isUnchanged(path: Buffer, found: WorkingFile): boolean {
  const stat = lstatIfExists(path);
  if (found.kind === "nothing") return stat === undefined;
  if (found.kind !== "file" && found.kind !== "link") return false;
  const before = found.stat;
  return (
    stat !== undefined &&
    stat.ino === before.ino &&
    stat.size === before.size &&
    stat.mode === before.mode &&
    stat.mtimeNs === before.mtimeNs &&
    stat.ctimeNs === before.ctimeNs
  );
}

export function lstatIfExists(path: Buffer): BigIntStats | undefined {
  try {
    return lstatSync(path, { bigint: true, throwIfNoEntry: false });
  } catch (error) {
    // A part of the path is a file, or a link that leads to itself.
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOTDIR" || code === "ELOOP") return undefined;
    throw error;
  }
}

const chunkBytes = 1024 * 1024;

function hashFile(path: Buffer, format: ObjectFormat): string {
  const file = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  try {
    const hash = startBlobHash(format, fstatSync(file, { bigint: true }).size);
    const chunk = Buffer.alloc(chunkBytes);
    for (let bytes = readSync(file, chunk); bytes > 0; bytes = readSync(file, chunk)) {
      hash.update(chunk.subarray(0, bytes));
    }
    return hash.digest("hex");
  } finally {
    closeSync(file);
  }
}

function startBlobHash(format: ObjectFormat, bytes: bigint) {
  return createHash(format).update(`blob ${bytes}\0`);
}
