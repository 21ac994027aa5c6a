/**
 * Walks the tree that is packed, of any depth: its members in order, each with its header and contents. Runs with the
 * rights of the calling thread. A file that may not be read ends the archive, so that no part passes for the whole.
 * Sockets, pipes and devices are left out.
 */
import { openSync, readSync } from "node:fs";
import { BerthError } from "../../../src/protocol/error-codes.ts";
import { limits } from "../../../src/protocol/limits.ts";
import { notAFile, toFileError } from "../files/file-errors.ts";
import { isView, openNames, openPath, type Target, textOf } from "../files/paths.ts";
import { tempNamePattern } from "../files/unfinished.ts";
import { hasCode } from "../kernel/error-codes.ts";
import {
  close,
  closing,
  currentFolder,
  isSameFile,
  open,
  openAt,
  readEntries,
  readlinkAt,
  type Status,
  statusAt,
} from "../kernel/openat.ts";
import { headerOf, type Member, padded } from "./header.ts";

/** Whole blocks; or an open file, of which `size` bytes follow, padded with zeros to a whole block. */
export type Piece = Buffer | { fd: number; size: number };

/** Smaller files are read together with their header; other calls run while larger ones are read. */
const smallBytes = 64 * 1024;

/** `linked`: paths of files with several names, by their inode. */
type WalkState = { shown: string; members: number; linked: Map<string, string> };

export function* walk(target: Target): Generator<Piece | undefined, void> {
  const top = openPath(currentFolder, target.raw);
  const state: WalkState = { shown: target.shown, members: 0, linked: new Map() };
  using _top = closing(top);
  const status = statusAt(top);
  if (status.kind === "folder") {
    yield headOf(state, "./", status);
    yield* below(state, openNames(top, "."));
  } else if (status.kind === "file") {
    const name = target.raw.slice(target.raw.lastIndexOf("/") + 1);
    const fd = openSync(`/proc/self/fd/${top}`, open.read | open.nonBlocking);
    yield* fileOf(state, `./${name}`, fd);
  } else throw notAFile(target.shown, "a device, pipe or socket");
}

/** A folder on the way to the present one. `fd` is undefined while it is closed. */
type Folder = { fd: number | undefined; name: string; status: Status; names: string[] };

/** So many stay open; those further down are opened again by `..` on the way back. */
const openFoldersMax = 64;

/** Takes over the descriptor of the top folder. */
function* below(state: WalkState, top: number): Generator<Piece | undefined, void> {
  const path: Folder[] = [{ fd: top, name: ".", status: statusAt(top), names: [] }];
  let prefix = "./";
  try {
    yield* readNames(state, path);
    for (let folder = path.at(-1); folder !== undefined; folder = path.at(-1)) {
      const name = folder.names.pop();
      if (name === undefined) {
        leaveFolder(state, path);
        prefix = prefixOf(path);
        continue;
      }
      const member = { name, path: prefix + name };
      try {
        const status = statusAt(fdOf(folder), name);
        if (status.kind !== "folder") yield* entry(state, fdOf(folder), member, status);
        else if (enterFolder(path, name)) {
          prefix = prefixOf(path);
          yield headOf(state, prefix, path.at(-1)?.status ?? status);
          yield* readNames(state, path);
        }
      } catch (error) {
        // The entry was removed meanwhile.
        if (hasCode(error, "ENOENT")) continue;
        throw toFileError(error, `${state.shown}/${textOf(member.path.slice(2))}`);
      }
    }
  } finally {
    for (const { fd } of path) if (fd !== undefined) close(fd);
  }
}

/** False: the folder is a view of the kernel, and is left out. */
function enterFolder(path: Folder[], name: string): boolean {
  const above = path.at(-1);
  if (above === undefined) throw new Error("There is no folder to enter from.");
  const fd = openAt(fdOf(above), name, open.read | open.folder | open.noFollow);
  const status = statusAt(fd);
  if (status.mount !== above.status.mount && isView(fd)) {
    close(fd);
    return false;
  }
  path.push({ fd, name, status, names: [] });
  if (path.length > openFoldersMax) {
    close(fdOf(above));
    above.fd = undefined;
  }
  return true;
}

function leaveFolder({ shown }: WalkState, path: Folder[]): void {
  const [above, done] = path.slice(-2);
  const left = done ?? above;
  if (left === undefined) return;
  if (done !== undefined && above !== undefined && above.fd === undefined) {
    above.fd = openNames(fdOf(done), "..");
    if (!isSameFile(statusAt(above.fd), above.status)) throw moved(shown);
  }
  path.pop();
  close(fdOf(left));
}

/** Reads the names of the last folder of the path, in the folder's own order from the end. */
function* readNames(state: WalkState, path: Folder[]): Generator<undefined, void> {
  const folder = path.at(-1);
  if (folder === undefined) return;
  const fd = fdOf(folder);
  for (let found = readEntries(fd); found.length > 0; found = readEntries(fd)) {
    for (const { name } of found) if (!tempNamePattern.test(name)) folder.names.push(name);
    if (folder.names.length > limits.archiveEntriesMax) throw tooManyMembers(state);
    yield;
  }
  folder.names.reverse();
}

function fdOf({ fd }: Folder): number {
  if (fd === undefined) throw new Error("The folder is closed.");
  return fd;
}

function prefixOf(path: Folder[]): string {
  return path.map(({ name }) => `${name}/`).join("");
}

function moved(shown: string): BerthError {
  return new BerthError("unavailable", `A folder in ${shown} was moved while it was archived.`);
}

function* entry(
  state: WalkState,
  folder: number,
  { name, path }: { name: string; path: string },
  status: Status,
): Generator<Piece, void> {
  if (status.kind === "link") {
    yield headOf(state, path, status, readlinkAt(folder, name));
  } else if (status.kind === "file" && !(yield* asHardLink(state, path, status))) {
    const flags = open.read | open.nonBlocking | open.noTerminal | open.noFollow;
    yield* fileOf(state, path, openAt(folder, name, flags));
  }
}

/** Writes a further name of a file that is in the archive already. False: it is not. */
function* asHardLink(state: WalkState, path: string, status: Status): Generator<Piece, boolean> {
  if (status.links < 2) return false;
  const key = `${status.device}:${status.inode}`;
  const known = state.linked.get(key);
  if (known === undefined) {
    state.linked.set(key, path);
    return false;
  }
  yield headOf(state, path, { ...status, kind: "file" }, known, "hard link");
  return true;
}

/** Takes over the descriptor. */
function* fileOf(state: WalkState, path: string, fd: number): Generator<Piece, void> {
  using _file = closing(fd);
  const status = statusAt(fd);
  if (status.kind !== "file") return;
  const head = headOf(state, path, status);
  const { size } = status;
  if (size > smallBytes) {
    yield head;
    yield { fd, size };
    return;
  }
  const member = Buffer.alloc(head.length + padded(size));
  head.copy(member);
  for (let done = 0; done < size; ) {
    const bytes = readSync(fd, member, head.length + done, size - done, done);
    if (bytes === 0) break;
    done += bytes;
  }
  yield member;
}

function headOf(
  state: WalkState,
  path: string,
  status: Status,
  says = "",
  kind: Member["kind"] = status.kind === "other" ? "file" : status.kind,
): Buffer {
  state.members += 1;
  if (state.members > limits.archiveEntriesMax) throw tooManyMembers(state);
  const { mode, uid, gid, modifiedNs } = status;
  const size = kind === "file" ? status.size : 0;
  return headerOf({ path, kind, mode, uid, gid, size, modifiedNs, linkTarget: says });
}

function tooManyMembers({ shown }: WalkState): BerthError {
  const limit = limits.archiveEntriesMax;
  const message = `${shown} holds more than the ${limit} entries of one archive.`;
  return new BerthError("bad_request", message, {
    hint: "Archive the folders below it one by one.",
    facts: { field: "path", limit },
  });
}
