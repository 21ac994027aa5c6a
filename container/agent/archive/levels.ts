/**
 * Owns the folders that are being filled: the way from the target to the member that comes, what mode and time each
 * gets when the next member stands elsewhere, and the right to write into them until then.
 * Does not own files and links. Everything runs with the rights of the calling thread.
 */
import { chmodSync } from "node:fs";
import { isView } from "../files/paths.ts";
import { isCode } from "../files/refusal.ts";
import {
  close,
  mkdirAt,
  nowhere,
  open,
  openBeneath,
  type Status,
  setModifiedAt,
  statusAt,
  unlinkAt,
} from "../kernel/openat.ts";

/** What it gets when it is left; undefined: it stays as it is. */
type Final = { mode: number; modifiedNs: bigint | undefined };

type Level = { name: string; path: string; final: Final | undefined };

const newMode = 0o755;
const ownerAll = 0o700;

export class Levels {
  readonly #root: number;
  /** Everything below the target was made by this archive: folders that it comes back to keep their times. */
  readonly #isOwn: boolean;
  readonly #levels: Level[] = [];
  #at: { path: string; fd: number } | undefined;

  constructor(root: number, isOwn: boolean) {
    this.#root = root;
    this.#isOwn = isOwn;
  }

  /** The open folder on this way; missing ones are made. It is closed by the next call. */
  enter(names: string[]): number {
    this.#leaveTo(names);
    while (this.#levels.length < names.length) this.#down(names[this.#levels.length] ?? "");
    return this.#open(names.join("/"));
  }

  /** The folder on this way is a member itself. */
  folder(names: string[], final: Final): void {
    this.enter(names.slice(0, -1));
    // One that is being filled begins anew.
    this.#down(names.at(-1) ?? "", final);
  }

  /** All of them have their modes and times then. */
  leave(): void {
    this.#leaveTo([]);
    this.#closeAt();
  }

  /** Whether it was left or not. */
  end(): void {
    this.#closeAt();
  }

  #leaveTo(names: string[]): void {
    const other = this.#levels.findIndex(({ name }, at) => name !== names[at]);
    const common = other < 0 ? this.#levels.length : other;
    while (this.#levels.length > common) {
      const level = this.#levels.pop();
      if (level?.final !== undefined) this.#finish(level.path, level.final);
    }
  }

  #finish(path: string, { mode, modifiedNs }: Final): void {
    const fd = this.#open(path);
    const name = `/proc/self/fd/${fd}`;
    if (modifiedNs !== undefined) setModifiedAt({ folder: nowhere, name }, modifiedNs, true);
    chmodSync(name, mode);
  }

  #down(name: string, told?: Final): void {
    const holder = this.#levels.map((level) => level.name).join("/");
    const path = holder === "" ? name : `${holder}/${name}`;
    const isNew = makeIn(this.#open(holder), name, told !== undefined);
    const fd = this.#open(path);
    const status = statusAt(fd);
    const final = told ?? (isNew ? implicit : this.#isOwn ? finalOf(status) : undefined);
    if (final !== undefined && (status.mode & ownerAll) !== ownerAll) {
      chmodSync(`/proc/self/fd/${fd}`, status.mode | ownerAll);
    }
    this.#levels.push({ name, path, final });
  }

  /** Through whatever links, but never out of the target. */
  #open(path: string): number {
    if (this.#at?.path === path) return this.#at.fd;
    this.#closeAt();
    const fd = openBeneath(this.#root, path === "" ? "." : path, open.placeOnly | open.folder);
    this.#at = { path, fd };
    if (isView(fd)) throw Object.assign(new Error("a view of the kernel"), { code: "EACCES" });
    return fd;
  }

  #closeAt(): void {
    if (this.#at !== undefined) close(this.#at.fd);
    this.#at = undefined;
  }
}

const implicit: Final = { mode: newMode, modifiedNs: undefined };

function finalOf({ mode, modifiedNs }: Status): Final {
  return { mode, modifiedNs };
}

/** False: a folder was there. What is a member itself takes the place of a file or link; else that is in the way. */
function makeIn(folder: number, name: string, isMember: boolean): boolean {
  try {
    mkdirAt(folder, name, ownerAll);
    return true;
  } catch (error) {
    if (!isCode(error, "EEXIST")) throw error;
  }
  if (isMember && statusAt(folder, name).kind !== "folder") {
    unlinkAt(folder, name, "file");
    mkdirAt(folder, name, ownerAll);
    return true;
  }
  return false;
}
