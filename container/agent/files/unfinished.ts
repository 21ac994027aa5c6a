/**
 * Owns a file or folder on its way to its place: a file without a name where the file system has such, else beside
 * its place under a name of its own; and what an agent that was killed left under such names.
 * Does not own rights: everything runs with those of the calling thread.
 */
import {
  close,
  linkAt,
  namesOf,
  open,
  openAt,
  renameAt,
  type Spot,
  statusAt,
  unlinkAt,
} from "../kernel/openat.ts";
import { openNames } from "./paths.ts";
import { isCode } from "./refusal.ts";
import { removeTree } from "./remove.ts";

/** Such names are no news to those who watch, and stand in no list. */
export const besidePattern = /^\.berth-[a-z0-9]{16}$/;

/** Those of this life; any other is left of a life that was killed. */
const alive = new Set<string>();

export function takeBesideName(): string {
  const name = `.berth-${crypto.randomUUID().replaceAll("-", "").slice(0, 16)}`;
  alive.add(name);
  return name;
}

export function freeBesideName(name: string): void {
  alive.delete(name);
}

export class Unfinished {
  readonly fd: number;
  readonly #folder: number;
  /** Undefined: it has none yet. */
  #name: string | undefined;

  /** Of `folder`, which stays open until its end. */
  constructor(folder: number) {
    this.#folder = folder;
    try {
      this.fd = openAt(folder, ".", open.write | open.nameless, 0o600);
    } catch (error) {
      // Older overlays, and file systems over a network, have no nameless ones.
      if (!isCode(error, "EOPNOTSUPP", "EISDIR", "ENOENT")) throw error;
      const name = takeBesideName();
      this.#name = name;
      const flags = open.write | open.create | open.exclusive | open.noFollow;
      try {
        this.fd = openAt(folder, name, flags, 0o600);
      } catch (failed) {
        freeBesideName(name);
        throw failed;
      }
    }
  }

  /** In one step, in the place of what may be there. */
  take(spot: Spot, { overwrite }: { overwrite: boolean }): void {
    if (this.#name === undefined && !this.#isLinked(spot, overwrite)) return;
    const name = this.#name ?? this.#linkBeside();
    renameAt({ folder: this.#folder, name }, spot, { overwrite });
    freeBesideName(name);
    this.#name = undefined;
  }

  /** Whether it was placed or not. */
  end(): void {
    close(this.fd);
    const name = this.#name;
    if (name === undefined) return;
    this.#name = undefined;
    freeBesideName(name);
    removeBeside({ folder: this.#folder, name });
  }

  /** False: it has its place. */
  #isLinked(spot: Spot, overwrite: boolean): boolean {
    try {
      linkAt(this.fd, spot);
      return false;
    } catch (error) {
      if (overwrite && isCode(error, "EEXIST")) return true;
      throw error;
    }
  }

  #linkBeside(): string {
    const name = takeBesideName();
    this.#name = name;
    linkAt(this.fd, { folder: this.#folder, name });
    return name;
  }
}

export function removeBeside(spot: Spot): void {
  try {
    unlinkAt(spot.folder, spot.name, "file");
  } catch (error) {
    if (!isCode(error, "ENOENT")) console.error("a file that was not finished stays:", error);
  }
}

/** What a killed life left in this folder. */
export function* removeStale(folder: number): Generator<undefined, void> {
  const fd = openNames(folder, ".");
  try {
    const stale: string[] = [];
    for (let names = namesOf(fd); names.length > 0; names = namesOf(fd)) {
      for (const { name } of names) if (isStale(name)) stale.push(name);
      yield;
    }
    for (const name of stale) yield* removeWhole({ folder: fd, name });
  } finally {
    close(fd);
  }
}

export function isStale(name: string): boolean {
  return besidePattern.test(name) && !alive.has(name);
}

/** A file or a tree of ours, whatever the modes in it; what cannot be removed stays. */
export function* removeWhole(spot: Spot): Generator<undefined, void> {
  try {
    const status = statusAt(spot.folder, spot.name);
    if (status.kind === "folder") yield* removeTree(spot, status, { opens: true });
    else unlinkAt(spot.folder, spot.name, "file");
  } catch (error) {
    if (!isCode(error, "ENOENT")) console.error("what was not finished stays:", error);
  }
}
