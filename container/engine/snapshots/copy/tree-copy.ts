/**
 * Copies a tree of any depth with all that `cp --archive` preserves. It has one folder of each side open, and returns
 * from a folder by `..`, which must lead to where it came from.
 */
import { closeSync, mkdirSync, openSync } from "node:fs";
import { FileStatus, readNames, readTarget } from "../changes/kernel.ts";
import { copyAttributes, copyAttributesUnopened } from "./attributes.ts";
import {
  CopyError,
  copyContent,
  type EntryLocation,
  makeFile,
  makeFolder,
  makeHardLink,
  makeLink,
  makeSpecial,
  openFile,
  openFolder,
} from "./kernel.ts";

type Folder = { name: string; status: FileStatus; names: string[] };
type Sides = { source: number; target: number };

/** Names an entry, relative to the tree, that the kernel refuses to copy. */
export class EntryError extends Error {
  readonly path: string;
  readonly code: string;

  constructor(path: string, { code }: CopyError) {
    super(`${code}: an entry cannot be copied`);
    this.path = path;
    this.code = code;
  }
}

export class TreeCopy {
  readonly #links: number;
  readonly #linked = new Set<string>();
  readonly #status = new FileStatus();

  /**
   * `links` is an empty folder next to the copies, which the caller removes. It gets a link to each file with several
   * names, so that the later names need no path to the first one.
   */
  constructor(links: string) {
    this.#links = openSync(links, "r");
  }

  /** Nothing may exist at `to`. */
  copy(from: string, to: string): void {
    mkdirSync(to, { mode: 0o700 });
    const sides = { source: openSync(from, "r"), target: openSync(to, "r") };
    const path = [folderIn(sides.source, "")];
    let name: string | undefined;
    try {
      for (let folder = path.at(-1); folder !== undefined; folder = path.at(-1)) {
        name = folder.names.pop();
        if (name === undefined) leaveFolder(sides, path);
        else if (this.#copyEntry(sides, name)) enterFolder(sides, path, name);
      }
    } catch (error) {
      if (!(error instanceof CopyError)) throw error;
      const names = [...path.map((folder) => folder.name), name ?? ""];
      throw new EntryError(names.filter(Boolean).join("/"), error);
    } finally {
      closeSync(sides.source);
      closeSync(sides.target);
    }
  }

  /** Returns whether the entry is a folder, of which only the copy itself exists then. */
  #copyEntry({ source, target }: Sides, name: string): boolean {
    const status = this.#status;
    if (!status.read(source, name)) throw changed();
    if (status.isFolder) {
      makeFolder(target, name);
      return true;
    }
    if (status.links > 1 && this.#copyAsLink(target, name)) return false;
    const [from, to] = [
      { folder: source, name },
      { folder: target, name },
    ];
    if (status.isFile) copyFile(from, to, status);
    else {
      if (status.isLink) makeLink(target, name, readTarget(source, name));
      else makeSpecial(target, name, status);
      copyAttributesUnopened(from, to, status);
    }
    if (status.links > 1) this.#rememberLink(to);
    return false;
  }

  #copyAsLink(target: number, name: string): boolean {
    const known = this.#status.inode.toString();
    if (!this.#linked.has(known)) return false;
    makeHardLink({ folder: this.#links, name: known }, { folder: target, name });
    return true;
  }

  #rememberLink(to: EntryLocation): void {
    const known = this.#status.inode.toString();
    makeHardLink(to, { folder: this.#links, name: known });
    this.#linked.add(known);
  }
}

function copyFile(from: EntryLocation, to: EntryLocation, status: FileStatus): void {
  const source = openFile(from.folder, from.name);
  try {
    const target = makeFile(to.folder, to.name);
    try {
      copyContent(source, target, status);
      copyAttributes({ ...from, fd: source }, { ...to, fd: target }, status);
    } finally {
      closeSync(target);
    }
  } finally {
    closeSync(source);
  }
}

/** Opens both sides of a folder in place of those above it. */
function enterFolder(sides: Sides, path: Folder[], name: string): void {
  replaceSide(sides, "source", openFolder(sides.source, name));
  replaceSide(sides, "target", openFolder(sides.target, name));
  path.push(folderIn(sides.source, name));
}

/** Completes a folder and returns to the one above it. A folder that has changed its place has another one above. */
function leaveFolder(sides: Sides, path: Folder[]): void {
  const { source, target } = sides;
  const done = path.pop();
  if (done === undefined) return;
  const [from, to] = [
    { folder: source, name: ".", fd: source },
    { folder: target, name: ".", fd: target },
  ];
  copyAttributes(from, to, done.status);
  const above = path.at(-1);
  if (above === undefined) return;
  replaceSide(sides, "source", openFolder(source, ".."));
  replaceSide(sides, "target", openFolder(target, ".."));
  if (statusOf(sides.source).inode !== above.status.inode) throw changed();
}

function replaceSide(sides: Sides, side: keyof Sides, folder: number): void {
  closeSync(sides[side]);
  sides[side] = folder;
}

/** The status is read before the names, because reading them changes the time of the last access. */
function folderIn(fd: number, name: string): Folder {
  const status = statusOf(fd);
  return { name, status, names: [...readNames(fd)].flat() };
}

function statusOf(fd: number): FileStatus {
  const status = new FileStatus();
  status.read(fd, "");
  return status;
}

function changed(): Error {
  return new Error("A tree changed while it was copied.");
}
