/**
 * Owns the walk through two saved trees at once, folder by folder: what is in one of them, in both, and not the same.
 * Does not own what is the same (same.ts) nor which paths are listed (ChangeList). It holds names of folders that it has
 * yet to look into, never those of files; at most six descriptors are open at once.
 */
import { closeSync, openSync } from "node:fs";
import type { ChangeList } from "../../../../src/protocol/internal/change-list.ts";
import { shownPath } from "../../../../src/protocol/internal/shown-path.ts";
import { namesOf, openBelow, Status, wayBytesMax } from "./kernel.ts";
import type { Sameness } from "./same.ts";

type Side = "older" | "newer";
/** `isTold`: it says itself what it is where nothing in it does. */
type Folder = { path: string; in: "both" } | { path: string; in: Side; isTold: boolean };

export class Walk {
  readonly #roots: Record<Side, number | undefined>;
  readonly #list: ChangeList;
  readonly #sameness: Sameness;
  readonly #older = new Status();
  readonly #newer = new Status();
  readonly #ahead: Folder[] = [];

  /** Without an older one all of the newer is added. */
  constructor(
    roots: { older: string | undefined; newer: string },
    { list, sameness }: { list: ChangeList; sameness: Sameness },
  ) {
    const { older, newer } = roots;
    this.#roots = {
      older: older === undefined ? undefined : openSync(older, "r"),
      newer: openSync(newer, "r"),
    };
    this.#list = list;
    this.#sameness = sameness;
  }

  run(): void {
    const { older, newer } = this.#roots;
    if (older === undefined) this.#ahead.push({ path: "", in: "newer", isTold: false });
    else if (newer !== undefined) this.#lookAtBoth("", "", { older, newer });
    for (let next = this.#ahead.pop(); next !== undefined; next = this.#ahead.pop()) {
      if (next.in === "both") this.#lookIntoBoth(next.path);
      else this.#lookInto(next.path, next);
    }
    for (const fd of [older, newer]) if (fd !== undefined) closeSync(fd);
  }

  #lookIntoBoth(path: string): void {
    const older = this.#open("older", path);
    const newer = this.#open("newer", path);
    try {
      let shared = 0;
      for (const names of namesOf(newer)) {
        for (const name of names) if (this.#lookAtBoth(path, name, { older, newer })) shared += 1;
      }
      // Most often nothing was deleted, and counting is cheaper than looking for each.
      let count = 0;
      for (const names of namesOf(older)) count += names.length;
      if (count !== shared) this.#findDeleted(path, { older, newer });
    } finally {
      closeSync(older);
      closeSync(newer);
    }
  }

  /** Whether it was in the older one. */
  #lookAtBoth(path: string, name: string, at: Record<Side, number>): boolean {
    const below = joined(path, name);
    if (!this.#newer.look(at.newer, name)) throw new Error("a saved tree changes");
    if (!this.#older.look(at.older, name)) {
      this.#tell("added", below, this.#newer);
      return false;
    }
    const [wasFolder, isFolder] = [this.#older.isFolder, this.#newer.isFolder];
    if (!this.#sameness.isSame({ ...at, name }, this.#older, this.#newer)) {
      this.#list.add("modified", shown(below, isFolder), bytesOf(this.#newer));
    }
    if (wasFolder && isFolder) this.#ahead.push({ path: below, in: "both" });
    else if (wasFolder) this.#ahead.push({ path: below, in: "older", isTold: false });
    else if (isFolder) this.#ahead.push({ path: below, in: "newer", isTold: false });
    return true;
  }

  #findDeleted(path: string, { older, newer }: Record<Side, number>): void {
    for (const names of namesOf(older)) {
      for (const name of names) {
        if (this.#newer.look(newer, name) || !this.#older.look(older, name)) continue;
        this.#tell("deleted", joined(path, name), this.#older);
      }
    }
  }

  /** A folder that only one of them has. */
  #lookInto(path: string, { in: side, isTold }: Extract<Folder, { in: Side }>): void {
    const fd = this.#open(side, path);
    const [kind, status] =
      side === "older" ? (["deleted", this.#older] as const) : (["added", this.#newer] as const);
    try {
      let isEmpty = true;
      for (const names of namesOf(fd)) {
        for (const name of names) {
          isEmpty = false;
          if (!status.look(fd, name)) throw new Error("a saved tree changes");
          this.#tell(kind, joined(path, name), status);
        }
      }
      if (isEmpty && isTold) this.#list.add(kind, shown(path, true));
    } finally {
      closeSync(fd);
    }
  }

  #tell(kind: "added" | "deleted", path: string, status: Status): void {
    if (status.isFolder) {
      this.#ahead.push({ path, in: kind === "added" ? "newer" : "older", isTold: true });
    } else {
      this.#list.add(kind, shown(path, false), kind === "added" ? bytesOf(status) : 0);
    }
  }

  /** In pieces where the way is longer than the kernel takes at once. */
  #open(side: Side, path: string): number {
    const root = this.#roots[side];
    if (root === undefined) throw new Error("there is no older tree");
    let [at, rest] = [root, path === "" ? "." : path];
    for (;;) {
      const cut = rest.length <= wayBytesMax ? rest.length : rest.lastIndexOf("/", wayBytesMax);
      const next = openBelow(at, rest.slice(0, cut), "folder");
      if (at !== root) closeSync(at);
      if (cut === rest.length) return next;
      [at, rest] = [next, rest.slice(cut + 1)];
    }
  }
}

function joined(path: string, name: string): string {
  return path === "" ? name : `${path}/${name}`;
}

function shown(path: string, isFolder: boolean): string {
  if (path === "") return "./";
  return isFolder ? `${shownPath(path)}/` : shownPath(path);
}

function bytesOf(status: Status): number {
  return status.isFile ? status.size : 0;
}
