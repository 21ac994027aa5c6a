/**
 * Owns putting what a command changed into the checkout: only over what was sent, whole, never through a link.
 * What was changed here meanwhile stays; the other version is laid beside it.
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
import type { Change } from "./changes.ts";
import { shown } from "./git.ts";
import { type Entry, isSame, isUntouched, look, pathOf, type Standing, standing } from "./here.ts";
import type { Staging } from "./staging.ts";

export type Placed =
  /** Kept: removed there, but changed here. */
  | { what: "changed" | "same" | "kept" }
  | { what: "conflict"; savedAs: string }
  | { what: "refused"; why: string };

type Wanted = { mode: string; id: string };
type Format = "sha1" | "sha256";

/** No name of a file. */
const missing = "/";
const suffix = ".from-sandbox";
const copiesMax = 1000;
const stemBytesMax = 200;

export class PutBack {
  readonly #top: string;
  readonly #format: Format;
  readonly #staging: Staging;

  constructor(top: string, format: Format, staging: Staging) {
    this.#top = top;
    this.#format = format;
    this.#staging = staging;
  }

  place({ name, from, to }: Change): Placed {
    const blocked = this.#wayTo(name, to !== undefined);
    if (blocked === missing) return { what: "same" };
    if (blocked !== undefined) return this.#beside(name, blocked, to);
    const path = pathOf(this.#top, name);
    const found = this.#standing(path, from);
    if (isSame(found, to)) return { what: "same" };
    if (!isSame(found, from)) return this.#beside(name, name, to);
    if (to === undefined) return this.#remove(name, path, found);
    if (!this.#replace(path, found, to)) return this.#beside(name, name, to);
    return { what: "changed" };
  }

  /** An empty folder is in nobody's way: git does not know it. */
  #standing(path: Buffer, from: Entry): Standing {
    const found = standing(path, this.#format);
    if (found.kind !== "folder" || from !== undefined) return found;
    try {
      rmdirSync(path);
      return { kind: "nothing" };
    } catch {
      return found;
    }
  }

  /** Makes folders that are missing where `make`; names the part that is in the way. */
  #wayTo(name: string, make: boolean): string | undefined {
    const parts = name.split("/");
    for (let count = 1; count < parts.length; count += 1) {
      const part = parts.slice(0, count).join("/");
      const path = pathOf(this.#top, part);
      const found = look(path);
      if (found?.isDirectory()) continue;
      if (found !== undefined) return part;
      if (!make) return missing;
      mkdirSync(path);
    }
    return undefined;
  }

  #remove(name: string, path: Buffer, found: Standing): Placed {
    if (!isUntouched(path, found)) return { what: "kept" };
    unlinkSync(path);
    this.#dropFolders(name);
    return { what: "changed" };
  }

  #dropFolders(name: string): void {
    const parts = name.split("/");
    for (let count = parts.length - 1; count > 0; count -= 1) {
      try {
        rmdirSync(pathOf(this.#top, parts.slice(0, count).join("/")));
      } catch {
        // Something else is in it.
        return;
      }
    }
  }

  /** False where somebody was quicker. */
  #replace(path: Buffer, found: Standing, to: Wanted): boolean {
    const fresh = this.#prepared(path, found, to);
    try {
      if (found.kind === "nothing") return linkNew(fresh, path);
      if (!isUntouched(path, found)) return false;
      renameSync(fresh, path);
      return true;
    } finally {
      rmSync(fresh, { force: true });
    }
  }

  /** Whole and beside its place, so that one step puts it there. */
  #prepared(path: Buffer, found: Standing, to: Wanted): Buffer {
    const slash = path.lastIndexOf(0x2f);
    const name = Buffer.from(`.berth-${randomUUID()}`);
    const fresh = Buffer.concat([path.subarray(0, slash + 1), name]);
    const staged = this.#staging.of(to.id, to.mode);
    if (to.mode === "120000") {
      symlinkSync(readFileSync(staged), fresh);
      return fresh;
    }
    copyFileSync(staged, fresh);
    const bits = found.kind === "file" ? found.stat.mode : lstatSync(staged, { bigint: true }).mode;
    chmodSync(fresh, executable(Number(bits) & 0o777, to.mode === "100755"));
    return fresh;
  }

  /** The version of the sandbox gets the name of what is in its way, and an end. */
  #beside(name: string, blocking: string, to: Entry): Placed {
    if (to === undefined) return { what: "kept" };
    const rest = name.slice(blocking.length);
    const slash = blocking.lastIndexOf("/") + 1;
    const stem = blocking.slice(0, slash) + blocking.slice(slash, slash + stemBytesMax);
    for (let copy = 1; copy <= copiesMax; copy += 1) {
      const other = `${stem}${suffix}${copy === 1 ? "" : `-${copy}`}${rest}`;
      if (this.#wayTo(other, true) !== undefined) continue;
      const path = pathOf(this.#top, other);
      const found = standing(path, this.#format);
      const isThere = isSame(found, to);
      if (isThere || (found.kind === "nothing" && this.#replace(path, found, to))) {
        return { what: "conflict", savedAs: shown(other) };
      }
    }
    return { what: "refused", why: `${copiesMax} versions of it lie here already` };
  }
}

/** Only where nothing is. */
function linkNew(fresh: Buffer, path: Buffer): boolean {
  try {
    linkSync(fresh, path);
    return true;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "EEXIST") return false;
    if (code !== "EPERM" && code !== "ENOTSUP" && code !== "EOPNOTSUPP") throw error;
    // A file system without links.
    if (look(path) !== undefined) return false;
    renameSync(fresh, path);
    return true;
  }
}

function executable(mode: number, isExecutable: boolean): number {
  if (!isExecutable) return mode & ~0o111;
  return (mode & 0o100) === 0 ? mode | ((mode & 0o444) >> 2) : mode;
}
