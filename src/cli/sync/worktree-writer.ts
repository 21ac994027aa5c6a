/**
 * Applies the changes of a command to the checkout: only over what was sent, completely, never through a link. What was
 * changed here meanwhile stays, and the other version is saved next to it.
 */
import { randomUUID } from "node:crypto";
import {
  chmodSync,
  copyFileSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmdirSync,
  rmSync,
  symlinkSync,
  unlinkSync,
} from "node:fs";
import type { Change } from "./fetch-changes.ts";
import { displayName } from "./git.ts";
import type { IncomingFiles } from "./incoming-files.ts";
import type { ObjectFormat } from "./object-store.ts";
import {
  type FileEntry,
  isUnchanged,
  lstatIfExists,
  matchesEntry,
  parentFolders,
  readWorkingFile,
  toPath,
  type WorkingFile,
} from "./working-file.ts";

type ApplyResult =
  /** `kept`: removed in the sandbox but changed here. */
  | { what: "changed" | "same" | "kept" }
  | { what: "conflict"; savedAs: string }
  | { what: "refused"; why: string };

type TargetEntry = NonNullable<FileEntry>;

/** Not a possible name of a file. */
const folderMissing = "/";
const conflictSuffix = ".from-sandbox";
const conflictsMax = 1000;
const stemBytesMax = 200;

export class WorktreeWriter {
  readonly #top: string;
  readonly #format: ObjectFormat;
  readonly #incoming: IncomingFiles;

  constructor(top: string, format: ObjectFormat, incoming: IncomingFiles) {
    this.#top = top;
    this.#format = format;
    this.#incoming = incoming;
  }

  /** Applies one change if the file here is still what was sent. */
  apply({ name, from, to }: Change): ApplyResult {
    const blocker = this.#findBlocker(name, to !== undefined);
    if (blocker === folderMissing) return { what: "same" };
    if (blocker !== undefined) return this.#saveConflict(name, blocker, to);
    const path = toPath(this.#top, name);
    const found = this.#readFile(path, from);
    if (matchesEntry(found, to)) return { what: "same" };
    if (!matchesEntry(found, from)) return this.#saveConflict(name, name, to);
    if (to === undefined) return this.#remove(name, path, found);
    if (!this.#replace(path, found, to)) return this.#saveConflict(name, name, to);
    return { what: "changed" };
  }

  /** An empty folder does not block a file: git does not track it. */
  #readFile(path: Buffer, from: FileEntry): WorkingFile {
    const found = readWorkingFile(path, this.#format);
    if (found.kind !== "folder" || from !== undefined) return found;
    try {
      rmdirSync(path);
      return { kind: "nothing" };
    } catch {
      return found;
    }
  }

  /** Returns the part of the path that blocks it, or `folderMissing`. Creates missing folders if `create`. */
  #findBlocker(name: string, create: boolean): string | undefined {
    for (const part of parentFolders(name)) {
      const path = toPath(this.#top, part);
      const found = lstatIfExists(path);
      if (found?.isDirectory()) continue;
      if (found !== undefined) return part;
      if (!create) return folderMissing;
      mkdirSync(path);
    }
    return undefined;
  }

  #remove(name: string, path: Buffer, found: WorkingFile): ApplyResult {
    if (!isUnchanged(path, found)) return { what: "kept" };
    unlinkSync(path);
    this.#removeEmptyFolders(name);
    return { what: "changed" };
  }

  #removeEmptyFolders(name: string): void {
    for (const folder of parentFolders(name).reverse()) {
      try {
        rmdirSync(toPath(this.#top, folder));
      } catch {
        // The folder is not empty.
        return;
      }
    }
  }

  /** False if somebody else changed the file first. */
  #replace(path: Buffer, found: WorkingFile, to: TargetEntry): boolean {
    const fresh = this.#prepare(path, found, to);
    try {
      if (found.kind === "nothing") return linkIfAbsent(fresh, path);
      if (!isUnchanged(path, found)) return false;
      renameSync(fresh, path);
      return true;
    } finally {
      rmSync(fresh, { force: true });
    }
  }

  /** Complete and in the same folder, so that one rename puts it in place. */
  #prepare(path: Buffer, found: WorkingFile, to: TargetEntry): Buffer {
    const slash = path.lastIndexOf(0x2f);
    const name = Buffer.from(`.berth-${randomUUID()}`);
    const fresh = Buffer.concat([path.subarray(0, slash + 1), name]);
    const staged = this.#incoming(to.id, to.mode);
    if (to.mode === "120000") {
      symlinkSync(readFileSync(staged), fresh);
      return fresh;
    }
    copyFileSync(staged, fresh);
    const bits = found.kind === "file" ? found.stat.mode : lstatSync(staged, { bigint: true }).mode;
    chmodSync(fresh, withExecutableBit(Number(bits) & 0o777, to.mode === "100755"));
    return fresh;
  }

  /** Saves the sandbox's version under the name of what blocks it, with a suffix. */
  #saveConflict(name: string, blocking: string, to: FileEntry): ApplyResult {
    if (to === undefined) return { what: "kept" };
    const rest = name.slice(blocking.length);
    const slash = blocking.lastIndexOf("/") + 1;
    const stem = blocking.slice(0, slash) + blocking.slice(slash, slash + stemBytesMax);
    for (let copy = 1; copy <= conflictsMax; copy += 1) {
      const other = `${stem}${conflictSuffix}${copy === 1 ? "" : `-${copy}`}${rest}`;
      if (this.#findBlocker(other, true) !== undefined) continue;
      const path = toPath(this.#top, other);
      const found = readWorkingFile(path, this.#format);
      const isThere = matchesEntry(found, to);
      if (isThere || (found.kind === "nothing" && this.#replace(path, found, to))) {
        return { what: "conflict", savedAs: displayName(other) };
      }
    }
    return { what: "refused", why: `there are already ${conflictsMax} versions of it here` };
  }
}

/** Creates the file only if nothing is there. */
function linkIfAbsent(fresh: Buffer, path: Buffer): boolean {
  try {
    linkSync(fresh, path);
    return true;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "EEXIST") return false;
    if (code !== "EPERM" && code !== "ENOTSUP" && code !== "EOPNOTSUPP") throw error;
    // A file system without hard links.
    if (lstatIfExists(path) !== undefined) return false;
    renameSync(fresh, path);
    return true;
  }
}

function withExecutableBit(mode: number, isExecutable: boolean): number {
  if (!isExecutable) return mode & ~0o111;
  return (mode & 0o100) === 0 ? mode | ((mode & 0o444) >> 2) : mode;
}
