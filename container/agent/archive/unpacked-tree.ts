/**
 * Owns putting members into a folder, each in one step: files written without a name first, links held inside.
 * Does not own where that folder stands (staging.ts), nor the stream. Each step is taken with the rights of a
 * command, right after the look whether the call may still write.
 */
import { fchmodSync, writeSync } from "node:fs";
import { limits } from "../../../src/protocol/limits.ts";
import { placeOf } from "../files/paths.ts";
import { isCode } from "../files/refusal.ts";
import { freeBesideName, takeBesideName, Unfinished } from "../files/unfinished.ts";
import { writeAll } from "../files/upload.ts";
import { type User, withRightsOf } from "../kernel/libc.ts";
import {
  close,
  linkAt,
  nowhere,
  open,
  openBeneath,
  renameAt,
  type Spot,
  setModifiedAt,
  statusAt,
  symlinkAt,
  unlinkAt,
} from "../kernel/openat.ts";
import { demandInside, namesOn } from "./allowed.ts";
import { Levels } from "./levels.ts";
import { badArchive, type Member } from "./member.ts";

export type Final = { mode: number; modifiedNs: bigint };

/** Written at once; the bytes of others while other calls are served. */
const smallBytes = 64 * 1024;

export class UnpackedTree {
  entries = 0;
  bytes = 0;
  /** Of the folder itself, where it is a member too. */
  own: Final | undefined;
  readonly #root: number;
  readonly #levels: Levels;
  readonly #user: User | undefined;
  readonly #pass: () => void;
  /** Files of this archive: only to those a hard link may lead. */
  readonly #files = new Set<bigint>();

  constructor(
    root: number,
    { isOwn, user, pass }: { isOwn: boolean; user: User | undefined; pass: () => void },
  ) {
    this.#root = root;
    this.#levels = new Levels(root, isOwn);
    this.#user = user;
    this.#pass = pass;
  }

  async add(member: Member, contents: AsyncIterable<Buffer>): Promise<void> {
    if (this.entries >= limits.archiveEntriesMax) {
      throw badArchive(`holds more than ${limits.archiveEntriesMax} entries`);
    }
    const names = namesOn(member.path);
    const { mode, modifiedNs } = member;
    if (member.kind === "folder") {
      const final = { mode, modifiedNs };
      if (names.length === 0) this.own = final;
      else this.#step(() => this.#levels.folder(names, final));
    } else {
      const name = names.pop();
      if (name === undefined) throw badArchive("holds a file or link without a name");
      if (member.kind === "file") await this.#file(member, names, name, contents);
      else this.#step(() => this.#link(member, names, name));
    }
    this.entries += 1;
  }

  /** Every folder has its mode and time then. */
  leave(): void {
    this.#step(() => this.#levels.leave());
  }

  /** What was refused in the middle leaves no folder closed or open that should not be so. */
  end(): void {
    try {
      withRightsOf(this.#user, () => this.#levels.leave());
    } catch {
      // It has gone, or is no more ours: nothing that this call could still do for it.
    }
    this.#levels.end();
  }

  #step<T>(work: () => T): T {
    return withRightsOf(this.#user, () => {
      this.#pass();
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
      const folder = this.#levels.enter(names);
      return { folder, file: new Unfinished(folder) };
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
        const own = { folder: nowhere, name: `/proc/self/fd/${file.fd}` };
        setModifiedAt(own, member.modifiedNs, true);
        fchmodSync(file.fd, member.mode);
        file.take({ folder, name }, { overwrite: true });
        this.#files.add(statusAt(file.fd).inode);
      });
    } finally {
      withRightsOf(this.#user, () => file.end());
    }
  }

  #link(member: Member, names: string[], name: string): void {
    const folder = this.#levels.enter(names);
    if (member.kind === "link") {
      demandInside(member, () => depthOf(folder, this.#root));
      put({ folder, name }, (spot) => symlinkAt(member.says, spot));
      setModifiedAt({ folder, name }, member.modifiedNs);
      return;
    }
    const to = namesOn(member.says, "a hard link to something").join("/");
    const fd = openBeneath(this.#root, to === "" ? "." : to, open.placeOnly | open.noFollow);
    try {
      const { kind, inode } = statusAt(fd);
      if (kind !== "file" || !this.#files.has(inode)) {
        throw badArchive("holds a hard link to what is no file of its own");
      }
      put({ folder, name }, (spot) => linkAt(fd, spot));
    } finally {
      close(fd);
    }
  }
}

/** How many folders below the root an open one really stands. */
function depthOf(folder: number, root: number): number {
  const [place, top] = [placeOf(folder), placeOf(root)];
  if (place === top) return 0;
  const prefix = top === "/" ? "/" : `${top}/`;
  if (!place.startsWith(prefix)) throw badArchive("holds a link in a folder that was moved away");
  return place.slice(prefix.length).split("/").length;
}

/** In one step, in the place of what may be there. */
function put(spot: Spot, make: (spot: Spot) => void): void {
  try {
    make(spot);
    return;
  } catch (error) {
    if (!isCode(error, "EEXIST")) throw error;
  }
  const beside = { folder: spot.folder, name: takeBesideName() };
  try {
    make(beside);
    renameAt(beside, spot, { overwrite: true });
  } finally {
    removeIf(beside);
    freeBesideName(beside.name);
  }
}

/** Two names of one file are not exchanged by a rename: then it is still there. */
function removeIf({ folder, name }: Spot): void {
  try {
    unlinkAt(folder, name, "file");
  } catch (error) {
    if (!isCode(error, "ENOENT")) throw error;
  }
}
