/**
 * Tracks the folders that are being filled while an archive is unpacked: creates and opens the way to each member, keeps
 * folders writable meanwhile, and sets their mode and time when the next member is elsewhere.
 * Everything runs with the rights of the calling thread.
 */
import { chmodSync } from "node:fs";
import { hasCode } from "../files/file-errors.ts";
import { isView } from "../files/paths.ts";
import {
  close,
  currentFolder,
  mkdirAt,
  open,
  openBeneath,
  type Status,
  setModifiedAt,
  statusAt,
  unlinkAt,
} from "../kernel/openat.ts";

/** Mode and time that a folder gets when it is left. */
type FolderAttributes = { mode: number; modifiedNs: bigint | undefined };

type OpenFolder = { name: string; path: string; final: FolderAttributes | undefined };

const newMode = 0o755;
const ownerAll = 0o700;

export class FolderStack {
  readonly #root: number;
  /** This archive made everything below the target: folders that it enters again keep their times. */
  readonly #isOwn: boolean;
  readonly #folders: OpenFolder[] = [];
  #current: { path: string; fd: number } | undefined;

  constructor(root: number, isOwn: boolean) {
    this.#root = root;
    this.#isOwn = isOwn;
  }

  /** Opens the folder, creating missing ones on the way. The descriptor is valid until the next call. */
  enter(names: string[]): number {
    this.#leaveTo(names);
    while (this.#folders.length < names.length) this.#down(names[this.#folders.length] ?? "");
    return this.#open(names.join("/"));
  }

  /** Creates a folder that is a member itself. */
  folder(names: string[], final: FolderAttributes): void {
    this.enter(names.slice(0, -1));
    // A folder that is already open is opened again with the new attributes.
    this.#down(names.at(-1) ?? "", final);
  }

  /** Sets the modes and times of all open folders. */
  leave(): void {
    this.#leaveTo([]);
    this.#closeCurrent();
  }

  /** May be called with or without `leave`. */
  end(): void {
    this.#closeCurrent();
  }

  #leaveTo(names: string[]): void {
    const other = this.#folders.findIndex(({ name }, index) => name !== names[index]);
    const common = other < 0 ? this.#folders.length : other;
    while (this.#folders.length > common) {
      const folder = this.#folders.pop();
      if (folder?.final !== undefined) this.#finish(folder.path, folder.final);
    }
  }

  #finish(path: string, { mode, modifiedNs }: FolderAttributes): void {
    const fd = this.#open(path);
    const name = `/proc/self/fd/${fd}`;
    if (modifiedNs !== undefined) setModifiedAt({ folder: currentFolder, name }, modifiedNs, true);
    chmodSync(name, mode);
  }

  #down(name: string, stated?: FolderAttributes): void {
    const parent = this.#folders.map((folder) => folder.name).join("/");
    const path = parent === "" ? name : `${parent}/${name}`;
    const isNew = makeIn(this.#open(parent), name, stated !== undefined);
    const fd = this.#open(path);
    const status = statusAt(fd);
    const final = stated ?? (isNew ? implicit : this.#isOwn ? finalOf(status) : undefined);
    if (final !== undefined && (status.mode & ownerAll) !== ownerAll) {
      chmodSync(`/proc/self/fd/${fd}`, status.mode | ownerAll);
    }
    this.#folders.push({ name, path, final });
  }

  /** Follows links, but never leaves the target. */
  #open(path: string): number {
    if (this.#current?.path === path) return this.#current.fd;
    this.#closeCurrent();
    const fd = openBeneath(this.#root, path === "" ? "." : path, open.pathOnly | open.folder);
    this.#current = { path, fd };
    if (isView(fd)) throw Object.assign(new Error("a view of the kernel"), { code: "EACCES" });
    return fd;
  }

  #closeCurrent(): void {
    if (this.#current !== undefined) close(this.#current.fd);
    this.#current = undefined;
  }
}

const implicit: FolderAttributes = { mode: newMode, modifiedNs: undefined };

function finalOf({ mode, modifiedNs }: Status): FolderAttributes {
  return { mode, modifiedNs };
}

/** False: the folder exists. Only a folder that is a member itself replaces a file or link of its name. */
function makeIn(folder: number, name: string, isMember: boolean): boolean {
  try {
    mkdirAt(folder, name, ownerAll);
    return true;
  } catch (error) {
    if (!hasCode(error, "EEXIST")) throw error;
  }
  if (isMember && statusAt(folder, name).kind !== "folder") {
    unlinkAt(folder, name, "file");
    mkdirAt(folder, name, ownerAll);
    return true;
  }
  return false;
}
