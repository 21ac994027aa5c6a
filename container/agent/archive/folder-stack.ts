/**
 * Tracks the folders that are being filled while an archive is unpacked: creates and opens the way to each member, keeps
 * folders writable meanwhile, and sets their mode and time when the next member is elsewhere.
 * Everything runs with the rights of the calling thread.
 */
import { chmodSync } from "node:fs";
import { isView } from "../files/paths.ts";
import { succeedsUnless } from "../kernel/error-codes.ts";
import {
  close,
  currentFolder,
  KernelError,
  mkdirAt,
  open,
  openBeneath,
  type Status,
  setModifiedAt,
  statusAt,
  unlinkAt,
} from "../kernel/openat.ts";

/** Mode and time that a folder gets when it is left. */
export type FolderAttributes = { mode: number; modifiedNs: bigint | undefined };

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
    this.close();
  }

  /** May be called with or without `leave`. */
  close(): void {
    if (this.#current !== undefined) close(this.#current.fd);
    this.#current = undefined;
  }

  #leaveTo(names: string[]): void {
    const other = this.#folders.findIndex(({ name }, index) => name !== names[index]);
    const common = other < 0 ? this.#folders.length : other;
    while (this.#folders.length > common) {
      const folder = this.#folders.pop();
      if (folder?.final !== undefined) setAttributes(this.#open(folder.path), folder.final);
    }
  }

  #down(name: string, stated?: FolderAttributes): void {
    const parent = this.#folders.map((folder) => folder.name).join("/");
    const path = parent === "" ? name : `${parent}/${name}`;
    const isNew = makeIn(this.#open(parent), name, stated !== undefined);
    const fd = this.#open(path);
    const status = statusAt(fd);
    const final = stated ?? this.#attributesToKeep(status, isNew);
    if (final !== undefined && (status.mode & ownerAll) !== ownerAll) {
      chmodSync(`/proc/self/fd/${fd}`, status.mode | ownerAll);
    }
    this.#folders.push({ name, path, final });
  }

  #attributesToKeep({ mode, modifiedNs }: Status, isNew: boolean): FolderAttributes | undefined {
    if (isNew) return { mode: newMode, modifiedNs: undefined };
    return this.#isOwn ? { mode, modifiedNs } : undefined;
  }

  /** Follows links, but never leaves the target. */
  #open(path: string): number {
    if (this.#current?.path === path) return this.#current.fd;
    this.close();
    const fd = openBeneath(this.#root, path === "" ? "." : path, open.pathOnly | open.folder);
    this.#current = { path, fd };
    if (isView(fd)) throw new KernelError("open", "EACCES");
    return fd;
  }
}

export function setAttributes(fd: number, { mode, modifiedNs }: FolderAttributes): void {
  const name = `/proc/self/fd/${fd}`;
  if (modifiedNs !== undefined) setModifiedAt({ folder: currentFolder, name }, modifiedNs, true);
  chmodSync(name, mode);
}

/** False: the folder exists. Only a folder that is a member itself replaces a file or link of its name. */
function makeIn(folder: number, name: string, isMember: boolean): boolean {
  const make = () => mkdirAt(folder, name, ownerAll);
  if (succeedsUnless(["EEXIST"], make)) return true;
  if (!isMember || statusAt(folder, name).kind === "folder") return false;
  unlinkAt(folder, name, "file");
  make();
  return true;
}
