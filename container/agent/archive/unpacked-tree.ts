/**
 * Creates the members of an archive in a folder, each in one step: files are written without a name first, links stay
 * inside. Each step runs with the rights of a command, directly after the check that the call may still write.
 */
import { fchmodSync, writeSync } from "node:fs";
import { limits } from "../../../src/protocol/limits.ts";
import { realPathOf } from "../files/paths.ts";
import { releaseTempName, reserveTempName, UnfinishedFile } from "../files/unfinished.ts";
import { writeAll } from "../files/upload.ts";
import { catchCodes, succeedsUnless } from "../kernel/error-codes.ts";
import { type User, withUserRights } from "../kernel/libc.ts";
import {
  closing,
  currentFolder,
  type EntryLocation,
  linkAt,
  open,
  openBeneath,
  renameAt,
  setModifiedAt,
  statusAt,
  symlinkAt,
  unlinkAt,
} from "../kernel/openat.ts";
import { type FolderAttributes, FolderStack } from "./folder-stack.ts";
import { badArchive, type Member } from "./header.ts";
import type { Staging } from "./staging.ts";

/** Smaller files are written in one go; other calls run while larger ones are written. */
const smallBytes = 64 * 1024;

export class UnpackedTree {
  entries = 0;
  bytes = 0;
  /** Attributes of the target folder, if it is a member itself. */
  own: FolderAttributes | undefined;
  readonly #root: number;
  readonly #folders: FolderStack;
  readonly #user: User | undefined;
  readonly #signal: AbortSignal;
  /** Inodes of this archive. Hard links may lead only to them. */
  readonly #files = new Set<bigint>();

  constructor({ root, isOwn }: Staging, user: User | undefined, signal: AbortSignal) {
    this.#root = root;
    this.#folders = new FolderStack(root, isOwn);
    this.#user = user;
    this.#signal = signal;
  }

  async add(member: Member, contents: AsyncIterable<Buffer>): Promise<void> {
    if (this.entries >= limits.archiveEntriesMax) {
      throw badArchive(`holds more than ${limits.archiveEntriesMax} entries`);
    }
    const names = splitMemberPath(member.path);
    const { mode, modifiedNs } = member;
    if (member.kind === "folder") {
      const final = { mode, modifiedNs };
      if (names.length === 0) this.own = final;
      else this.#step(() => this.#folders.folder(names, final));
    } else {
      const name = names.pop();
      if (name === undefined) throw badArchive("holds a file or link without a name");
      if (member.kind === "file") await this.#file(member, names, name, contents);
      else this.#step(() => this.#link(member, names, name));
    }
    this.entries += 1;
  }

  /** Sets the mode and time of every folder. */
  leave(): void {
    this.#step(() => this.#folders.leave());
  }

  /** After a failure too, folders get their final modes. */
  end(): void {
    try {
      withUserRights(this.#user, () => this.#folders.leave());
    } catch {
      // The folder was removed or changed meanwhile, and nothing can be done about it.
    }
    this.#folders.close();
  }

  #step<T>(work: () => T): T {
    return withUserRights(this.#user, () => {
      this.#signal.throwIfAborted();
      return work();
    });
  }

  async #file(
    member: Member,
    names: string[],
    name: string,
    contents: AsyncIterable<Buffer>,
  ): Promise<void> {
    const { folder, file } = this.#step(() => {
      const folder = this.#folders.enter(names);
      return { folder, file: new UnfinishedFile(folder) };
    });
    try {
      if (this.bytes + member.size > limits.fileBytesMax) {
        throw badArchive(`holds more than ${limits.fileBytesMax} bytes`);
      }
      for await (const piece of contents) {
        if (member.size > smallBytes) await writeAll(file.fd, piece);
        else writeSync(file.fd, piece);
        this.bytes += piece.length;
      }
      this.#step(() => {
        const location = { folder: currentFolder, name: `/proc/self/fd/${file.fd}` };
        setModifiedAt(location, member.modifiedNs, true);
        fchmodSync(file.fd, member.mode);
        file.moveIntoPlace({ folder, name }, { overwrite: true });
        this.#files.add(statusAt(file.fd).inode);
      });
    } finally {
      withUserRights(this.#user, () => file.end());
    }
  }

  #link(member: Member, names: string[], name: string): void {
    const folder = this.#folders.enter(names);
    if (member.kind === "link") {
      assertLinkStaysInside(member, () => depthOf(folder, this.#root));
      createOrReplace({ folder, name }, (location) => symlinkAt(member.linkTarget, location));
      setModifiedAt({ folder, name }, member.modifiedNs);
      return;
    }
    const to = splitMemberPath(member.linkTarget, "a hard link to something").join("/");
    const fd = openBeneath(this.#root, to === "" ? "." : to, open.pathOnly | open.noFollow);
    using _target = closing(fd);
    const { kind, inode } = statusAt(fd);
    if (kind !== "file" || !this.#files.has(inode)) {
      throw badArchive("holds a hard link to something that is not a file of the archive");
    }
    createOrReplace({ folder, name }, (location) => linkAt(fd, location));
  }
}

/** How many folders below the root an open folder really is. */
function depthOf(folder: number, root: number): number {
  const [path, top] = [realPathOf(folder), realPathOf(root)];
  if (path === top) return 0;
  const prefix = top === "/" ? "/" : `${top}/`;
  if (!path.startsWith(prefix)) throw badArchive("holds a link in a folder that was moved away");
  return path.slice(prefix.length).split("/").length;
}

/** Creates a link in one step, and replaces what may be there. */
function createOrReplace(location: EntryLocation, create: (location: EntryLocation) => void): void {
  if (succeedsUnless(["EEXIST"], () => create(location))) return;
  const temp = { folder: location.folder, name: reserveTempName() };
  try {
    create(temp);
    renameAt(temp, location, { overwrite: true });
  } finally {
    // A rename between two names of one file does nothing, so the temporary name may still exist.
    catchCodes(["ENOENT"], () => unlinkAt(temp.folder, temp.name, "file"));
    releaseTempName(temp.name);
  }
}

const nameBytesMax = 255;

/** Splits the path of a member into names; refuses by its text what no archive may hold. Empty for the target folder itself. */
function splitMemberPath(path: string, what = "a member"): string[] {
  if (path.startsWith("/")) throw badArchive(`holds ${what} with an absolute path`, relativeHint);
  if (path.includes("\0")) throw badArchive(`holds ${what} with a NUL in its path`);
  if (path.length > limits.pathBytesMax) throw badArchive(`holds ${what} with too long a path`);
  const names = path.split("/").filter((name) => name !== "" && name !== ".");
  if (names.includes("..")) throw badArchive(`holds ${what} with .. in its path`, relativeHint);
  if (names.some((name) => name.length > nameBytesMax)) {
    throw badArchive(`holds ${what} with too long a name`);
  }
  return names;
}

const relativeHint = "Pack it from inside its folder: `tar -C <folder> .`";

/**
 * A link may lead up as far as the target, and then down. A `..` after a name is refused, because it depends on where
 * that name leads. `depth` returns how many folders below the target the link is.
 */
function assertLinkStaysInside({ linkTarget: says }: Member, depth: () => number): void {
  const names = says.split("/").filter((name) => name !== "" && name !== ".");
  const up = names.findIndex((name) => name !== "..");
  const levelsUp = up < 0 ? names.length : up;
  if (says === "" || says.includes("\0")) throw badArchive("holds a link without a target");
  const isDevious = names.slice(levelsUp).includes("..");
  if (says.startsWith("/") || isDevious || (levelsUp > 0 && levelsUp > depth())) {
    throw badArchive("holds a link that leads out of the folder", linkHint);
  }
}

const linkHint = "Leave it out, or unpack the archive with a command in the sandbox.";
