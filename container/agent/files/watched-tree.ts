/**
 * Owns which folders of one tree are watched: those there, those made later with what was made in them before the
 * watch stood, and no more those that went.
 * Does not own how changes are told (watch.ts). Everything here runs with the rights of the calling thread.
 */
import { BerthError } from "../../../src/protocol/error-codes.ts";
import { limits } from "../../../src/protocol/limits.ts";
import { type Inotify, type News, news } from "../kernel/inotify.ts";
import { close, namesOf, nowhere, open, statusAt } from "../kernel/openat.ts";
import type { Changes } from "./changes.ts";
import { isView, openNames, type Target, textOf } from "./paths.ts";
import { isCode } from "./refusal.ts";
import { besidePattern } from "./unfinished.ts";

const [madeOrWritten, gone] = [
  news.made | news.movedTo | news.modified | news.closedAfterWriting,
  news.removed | news.movedFrom,
];

export class WatchedTree {
  readonly #target: Target;
  readonly #recursive: boolean;
  readonly #inotify: Inotify;
  readonly #changes: Changes;
  /** Paths below the root, raw; the root itself is empty. */
  readonly #paths = new Map<number, string>();
  readonly #watches = new Map<string, number>();
  #root: number | undefined;

  constructor(
    target: Target,
    { recursive, inotify, changes }: { recursive: boolean; inotify: Inotify; changes: Changes },
  ) {
    this.#target = target;
    this.#recursive = recursive;
    this.#inotify = inotify;
    this.#changes = changes;
  }

  get folders(): number {
    return this.#paths.size;
  }

  /** All that is there now, of which nothing is told. Also anew, after the kernel lost news. */
  *begin(): Generator<undefined, void> {
    for (const watch of this.#paths.keys()) this.#inotify.remove(watch);
    this.#paths.clear();
    this.#watches.clear();
    const fd = openNames(nowhere, this.#target.raw);
    try {
      yield* this.#addTree(fd, "", false);
    } finally {
      close(fd);
    }
    this.#root = this.#watches.get("");
    if (this.#root === undefined) throw tooManyFolders();
  }

  /** False: the root has gone. */
  *follow({ watch, what, name }: News): Generator<undefined, boolean> {
    const folder = this.#paths.get(watch);
    if (folder === undefined) return true;
    if (what & (news.selfRemoved | news.selfMoved)) {
      if (watch === this.#root) return false;
      return true;
    }
    if (name === "" || besidePattern.test(name)) return true;
    const path = folder === "" ? name : `${folder}/${name}`;
    const kind = what & news.isFolder ? "folder" : "file";
    if (what & gone) {
      if (kind === "folder") this.#forget(path);
      this.#tell(path, "removed", kind);
    } else if (what & madeOrWritten) {
      const isNew = (what & (news.made | news.movedTo)) !== 0;
      this.#tell(path, isNew ? "made" : "written", kind);
      if (kind === "folder" && isNew && this.#recursive) yield* this.#addLate(path);
    }
    return true;
  }

  #tell(path: string, what: "made" | "written" | "removed", kind: "file" | "folder"): void {
    const { shown } = this.#target;
    const root = shown === "/" ? "" : shown;
    this.#changes.add({ path: `${root}/${textOf(path)}`, what, kind });
  }

  *#addLate(path: string): Generator<undefined, void> {
    const fd = openIf(nowhere, `${this.#target.raw}/${path}`);
    if (fd === undefined) return;
    try {
      yield* this.#addTree(fd, path, true);
    } catch (error) {
      if (!(error instanceof BerthError)) throw error;
      // More folders than one watch may have: what happens in the others cannot be told.
      this.#changes.overflow();
    } finally {
      close(fd);
    }
  }

  /** The watch first, then the names: what is made in between is told twice, and never missed. */
  *#addTree(fd: number, path: string, tells: boolean): Generator<undefined, void> {
    this.#add(fd, path);
    if (path !== "" || this.#recursive) {
      for (let names = namesOf(fd); names.length > 0; names = namesOf(fd)) {
        for (const { name, isFolder = statusIs(fd, name) } of names) {
          const below = path === "" ? name : `${path}/${name}`;
          if (tells) this.#tell(below, "made", isFolder ? "folder" : "file");
          if (isFolder) yield* this.#addBelow(fd, name, below, tells);
        }
        yield;
      }
    }
  }

  *#addBelow(fd: number, name: string, path: string, tells: boolean): Generator<undefined, void> {
    const below = openIf(fd, name);
    if (below === undefined) return;
    try {
      if (!isView(below)) yield* this.#addTree(below, path, tells);
    } finally {
      close(below);
    }
  }

  #add(fd: number, path: string): void {
    if (this.#paths.size >= limits.fileWatchFoldersMax) throw tooManyFolders();
    const watch = this.#inotify.add(fd);
    if (watch === undefined) throw tooManyFolders();
    this.#paths.set(watch, path);
    this.#watches.set(path, watch);
  }

  /** With all below it: the kernel would tell of them under names that they no more have. */
  #forget(path: string): void {
    for (const [known, watch] of this.#watches) {
      if (known !== path && !known.startsWith(`${path}/`)) continue;
      this.#inotify.remove(watch);
      this.#watches.delete(known);
      this.#paths.delete(watch);
    }
  }
}

function statusIs(fd: number, name: string): boolean {
  try {
    return statusAt(fd, name).kind === "folder";
  } catch {
    return false;
  }
}

/** Undefined: it has gone again, or may not be read. */
function openIf(folder: number, name: string): number | undefined {
  try {
    return openNames(folder, name, open.noFollow);
  } catch (error) {
    if (isCode(error, "ENOENT", "ENOTDIR", "ELOOP", "EACCES", "EPERM")) return undefined;
    throw error;
  }
}

function tooManyFolders(): BerthError {
  return new BerthError(
    "too_many",
    `more folders than the ${limits.fileWatchFoldersMax} that one watch, or than the kernel, may have`,
    {
      hint: "watch a folder further down, or with recursive=false",
      facts: { limit: limits.fileWatchFoldersMax },
    },
  );
}
