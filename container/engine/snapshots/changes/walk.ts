/**
 * Walks two saved trees at once, folder by folder, and reports what was added, deleted and modified. It remembers the
 * folders ahead but no files, and has at most six descriptors open.
 */
import { closeSync, openSync } from "node:fs";
import type { ChangeList } from "../../../../src/protocol/internal/change-list.ts";
import { escapePath } from "../../../../src/protocol/internal/escape-path.ts";
import type { EntryComparer } from "./compare.ts";
import { FileStatus, openBelow, pathBytesMax, readNames } from "./kernel.ts";

type Side = "older" | "newer";
/** `listIfEmpty`: an empty folder is listed itself; otherwise its entries are. */
type Folder = { path: string; in: "both" } | { path: string; in: Side; listIfEmpty: boolean };

export class TreeWalk {
  readonly #roots: Record<Side, number | undefined>;
  readonly #list: ChangeList;
  readonly #comparer: EntryComparer;
  readonly #older = new FileStatus();
  readonly #newer = new FileStatus();
  readonly #ahead: Folder[] = [];

  /** Without an older tree every entry of the newer one is added. */
  constructor(
    { older, newer }: { older: string | undefined; newer: string },
    list: ChangeList,
    comparer: EntryComparer,
  ) {
    this.#roots = {
      older: older === undefined ? undefined : openSync(older, "r"),
      newer: openSync(newer, "r"),
    };
    this.#list = list;
    this.#comparer = comparer;
  }

  run(): void {
    const { older, newer } = this.#roots;
    if (older === undefined) this.#ahead.push({ path: "", in: "newer", listIfEmpty: false });
    else if (newer !== undefined) this.#compareEntry("", "", { older, newer });
    for (let next = this.#ahead.pop(); next !== undefined; next = this.#ahead.pop()) {
      if (next.in === "both") this.#compareFolder(next.path);
      else this.#listFolder(next.path, next);
    }
    for (const fd of [older, newer]) if (fd !== undefined) closeSync(fd);
  }

  #compareFolder(path: string): void {
    const older = this.#open("older", path);
    const newer = this.#open("newer", path);
    try {
      let shared = 0;
      for (const names of readNames(newer)) {
        for (const name of names) if (this.#compareEntry(path, name, { older, newer })) shared += 1;
      }
      // Usually nothing was deleted, and counting is cheaper than a lookup per name.
      let count = 0;
      for (const names of readNames(older)) count += names.length;
      if (count !== shared) this.#findDeleted(path, { older, newer });
    } finally {
      closeSync(older);
      closeSync(newer);
    }
  }

  /** Returns whether the older tree has this name. */
  #compareEntry(path: string, name: string, folders: Record<Side, number>): boolean {
    const below = joinPath(path, name);
    if (!this.#newer.read(folders.newer, name))
      throw new Error("A saved tree changed while it was read.");
    if (!this.#older.read(folders.older, name)) {
      this.#report("added", below, this.#newer);
      return false;
    }
    const [wasFolder, isFolder] = [this.#older.isFolder, this.#newer.isFolder];
    if (!this.#comparer.isSame({ ...folders, name }, this.#older, this.#newer)) {
      this.#list.add("modified", displayPath(below, isFolder), bytesOf(this.#newer));
    }
    if (wasFolder && isFolder) this.#ahead.push({ path: below, in: "both" });
    else if (wasFolder) this.#ahead.push({ path: below, in: "older", listIfEmpty: false });
    else if (isFolder) this.#ahead.push({ path: below, in: "newer", listIfEmpty: false });
    return true;
  }

  #findDeleted(path: string, { older, newer }: Record<Side, number>): void {
    for (const names of readNames(older)) {
      for (const name of names) {
        if (this.#newer.read(newer, name) || !this.#older.read(older, name)) continue;
        this.#report("deleted", joinPath(path, name), this.#older);
      }
    }
  }

  /** Reports the entries of a folder that only one of the trees has. */
  #listFolder(path: string, { in: side, listIfEmpty }: Extract<Folder, { in: Side }>): void {
    const fd = this.#open(side, path);
    const [kind, status] =
      side === "older" ? (["deleted", this.#older] as const) : (["added", this.#newer] as const);
    try {
      let isEmpty = true;
      for (const names of readNames(fd)) {
        for (const name of names) {
          isEmpty = false;
          if (!status.read(fd, name)) throw new Error("A saved tree changed while it was read.");
          this.#report(kind, joinPath(path, name), status);
        }
      }
      if (isEmpty && listIfEmpty) this.#list.add(kind, displayPath(path, true));
    } finally {
      closeSync(fd);
    }
  }

  #report(kind: "added" | "deleted", path: string, status: FileStatus): void {
    if (status.isFolder) {
      this.#ahead.push({ path, in: kind === "added" ? "newer" : "older", listIfEmpty: true });
    } else {
      this.#list.add(kind, displayPath(path, false), kind === "added" ? bytesOf(status) : 0);
    }
  }

  /** Opens a folder piece by piece if its path is longer than the kernel accepts at once. */
  #open(side: Side, path: string): number {
    const root = this.#roots[side];
    if (root === undefined) throw new Error("There is no older tree.");
    let [folder, rest] = [root, path === "" ? "." : path];
    for (;;) {
      const cut = rest.length <= pathBytesMax ? rest.length : rest.lastIndexOf("/", pathBytesMax);
      const next = openBelow(folder, rest.slice(0, cut), "folder");
      if (folder !== root) closeSync(folder);
      if (cut === rest.length) return next;
      [folder, rest] = [next, rest.slice(cut + 1)];
    }
  }
}

function joinPath(path: string, name: string): string {
  return path === "" ? name : `${path}/${name}`;
}

function displayPath(path: string, isFolder: boolean): string {
  if (path === "") return "./";
  return isFolder ? `${escapePath(path)}/` : escapePath(path);
}

function bytesOf(status: FileStatus): number {
  return status.isFile ? status.size : 0;
}
