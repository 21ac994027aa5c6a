/**
 * Watches the folders of one tree: those that exist, those that are made later with what was made in them before the
 * watch began, and no longer those that were removed. Runs with the rights of the calling thread.
 */
import { BerthError } from "../../../src/protocol/error-codes.ts";
import { limits } from "../../../src/protocol/limits.ts";
import { type FolderWatcher, type InotifyEvent, inotifyEvents } from "../kernel/inotify.ts";
import { closing, currentFolder, open, readEntries, statusAt } from "../kernel/openat.ts";
import { openNames, openNamesIfReadable, type Target, textOf } from "./paths.ts";
import { tempNamePattern } from "./unfinished.ts";

const [madeOrWritten, gone] = [
  inotifyEvents.made |
    inotifyEvents.movedTo |
    inotifyEvents.modified |
    inotifyEvents.closedAfterWriting,
  inotifyEvents.removed | inotifyEvents.movedFrom,
];

type Change = {
  path: string;
  what: "made" | "written" | "removed";
  kind: "file" | "folder";
};

/** Collects changes until they are sent: one for each path, which sums up all that happened to it; bounded. */
export class PendingChanges {
  #waiting = new Map<string, Change>();
  #overflown = false;

  add(change: Change): void {
    if (this.#overflown) return;
    const before = this.#waiting.get(change.path);
    // Ordered by the latest change, so that a follower never sees a child before its folder.
    this.#waiting.delete(change.path);
    const isStillNew = before?.what === "made" && change.what === "written";
    this.#waiting.set(change.path, isStillNew ? { ...change, what: "made" } : change);
    if (this.#waiting.size > limits.fileWatchEventsMax) this.overflow();
  }

  /** Drops the pending changes: followers must list the tree again. */
  overflow(): void {
    this.#waiting.clear();
    this.#overflown = true;
  }

  get isEmpty(): boolean {
    return this.#waiting.size === 0 && !this.#overflown;
  }

  take(): { overflown: boolean; changes: Change[] } {
    const result = { overflown: this.#overflown, changes: [...this.#waiting.values()] };
    this.#waiting = new Map();
    this.#overflown = false;
    return result;
  }
}

type WatchedTreeOptions = { recursive: boolean; watcher: FolderWatcher; changes: PendingChanges };

export class WatchedTree {
  readonly #target: Target;
  readonly #recursive: boolean;
  readonly #watcher: FolderWatcher;
  readonly #changes: PendingChanges;
  /** Raw paths below the root; that of the root itself is empty. */
  readonly #paths = new Map<number, string>();
  readonly #watches = new Map<string, number>();
  #root: number | undefined;

  constructor(target: Target, { recursive, watcher, changes }: WatchedTreeOptions) {
    this.#target = target;
    this.#recursive = recursive;
    this.#watcher = watcher;
    this.#changes = changes;
  }

  /** Watches everything that exists, without reporting it. Called again after the kernel lost events. */
  *begin(): Generator<undefined, void> {
    for (const watch of this.#paths.keys()) this.#watcher.remove(watch);
    this.#paths.clear();
    this.#watches.clear();
    const fd = openNames(currentFolder, this.#target.raw);
    using _folder = closing(fd);
    this.#watcher.skipEarlierEvents();
    yield* this.#addTree(fd, "", false);
    this.#root = this.#watches.get("");
    if (this.#root === undefined) throw tooManyFolders();
  }

  /** False: the root was removed. */
  *follow({ watch, mask, name }: InotifyEvent): Generator<undefined, boolean> {
    const folder = this.#paths.get(watch);
    if (folder === undefined) return true;
    if (mask & (inotifyEvents.selfRemoved | inotifyEvents.selfMoved)) return watch !== this.#root;
    if (name === "" || tempNamePattern.test(name)) return true;
    const path = folder === "" ? name : `${folder}/${name}`;
    const kind = mask & inotifyEvents.isFolder ? "folder" : "file";
    if (mask & gone) {
      if (kind === "folder") this.#forget(path);
      this.#report(path, "removed", kind);
    } else if (mask & madeOrWritten) {
      const isNew = (mask & (inotifyEvents.made | inotifyEvents.movedTo)) !== 0;
      this.#report(path, isNew ? "made" : "written", kind);
      if (kind === "folder" && isNew && this.#recursive) yield* this.#addLate(path);
    }
    return true;
  }

  #report(path: string, what: Change["what"], kind: Change["kind"]): void {
    const { shown } = this.#target;
    const root = shown === "/" ? "" : shown;
    this.#changes.add({ path: `${root}/${textOf(path)}`, what, kind });
  }

  *#addLate(path: string): Generator<undefined, void> {
    const root = openNamesIfReadable(currentFolder, this.#target.raw, open.read);
    if (root === undefined) return;
    using _root = closing(root);
    try {
      yield* this.#addTree(root, path, true);
    } catch (error) {
      if (!(error instanceof BerthError)) throw error;
      // More or deeper folders than one watch may have: changes in the others go unnoticed.
      this.#changes.overflow();
    }
  }

  /**
   * Watches a folder and those below it. Watches first and lists then, so that what is made in between is reported twice
   * but never missed.
   */
  *#addTree(root: number, top: string, reports: boolean): Generator<undefined, void> {
    const ahead = [top];
    for (let path = ahead.pop(); path !== undefined; path = ahead.pop()) {
      const fd = this.#open(root, path);
      if (fd === undefined) continue;
      using _folder = closing(fd);
      this.#add(fd, path);
      if (path === "" && !this.#recursive) return;
      for (let names = readEntries(fd); names.length > 0; names = readEntries(fd)) {
        for (const { name, isFolder = statusIs(fd, name) } of names) {
          const below = path === "" ? name : `${path}/${name}`;
          if (reports) this.#report(below, "made", isFolder ? "folder" : "file");
          if (isFolder) ahead.push(below);
        }
        if (this.#paths.size + ahead.length > limits.fileWatchFoldersMax) throw tooManyFolders();
        yield;
      }
    }
  }

  #open(root: number, path: string): number | undefined {
    if (path === "") return openNames(root, ".");
    if (path.length > limits.pathBytesMax) throw tooDeep(this.#target);
    return openNamesIfReadable(root, path);
  }

  #add(fd: number, path: string): void {
    if (this.#paths.size >= limits.fileWatchFoldersMax) throw tooManyFolders();
    const watch = this.#watcher.add(fd);
    if (watch === undefined) throw tooManyFolders();
    this.#paths.set(watch, path);
    this.#watches.set(path, watch);
  }

  /** Also forgets all folders below, because the kernel would report them under their old names. */
  #forget(path: string): void {
    for (const [known, watch] of this.#watches) {
      if (known !== path && !known.startsWith(`${path}/`)) continue;
      this.#watches.delete(known);
      // A folder that was moved may be watched at its new path already.
      if (this.#paths.get(watch) !== known) continue;
      this.#watcher.remove(watch);
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

function tooManyFolders(): BerthError {
  const limit = limits.fileWatchFoldersMax;
  const message = `There are more folders than one watch (${limit}) or the kernel allows.`;
  const hint = "Watch a folder further down, or use recursive=false.";
  return new BerthError("too_many", message, { hint, facts: { limit } });
}

function tooDeep({ shown }: Target): BerthError {
  const limit = limits.pathBytesMax;
  const message = `${shown} has folders that are deeper than a path of ${limit} bytes reaches.`;
  const hint = "Watch a folder without them, or use recursive=false.";
  return new BerthError("bad_request", message, {
    hint,
    facts: { field: "path", path: shown, limit },
  });
}
