/**
 * Walks the tree that is packed: its members in order, each with its header and contents. Runs with the rights of the
 * calling thread. A file that may not be read ends the archive, so that no part passes for the whole.
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
  closing,
  currentFolder,
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
    const fd = openNames(top, ".");
    using _folder = closing(fd);
    yield headOf(state, "./", status);
    yield* below(state, { fd, prefix: "./", mount: status.mount });
  } else if (status.kind === "file") {
    const name = target.raw.slice(target.raw.lastIndexOf("/") + 1);
    const fd = openSync(`/proc/self/fd/${top}`, open.read | open.nonBlocking);
    yield* fileOf(state, `./${name}`, fd);
  } else throw notAFile(target.shown, "a device, pipe or socket");
}

type Folder = { fd: number; prefix: string; mount: bigint };

function* below(state: WalkState, folder: Folder): Generator<Piece | undefined, void> {
  for (let names = readEntries(folder.fd); names.length > 0; names = readEntries(folder.fd)) {
    for (const { name } of names) {
      if (tempNamePattern.test(name)) continue;
      const path = folder.prefix + name;
      try {
        yield* entry(state, folder, { name, path });
      } catch (error) {
        // The entry was removed meanwhile.
        if (hasCode(error, "ENOENT")) continue;
        throw toFileError(error, `${state.shown}/${textOf(path.slice(2))}`);
      }
    }
    yield;
  }
}

function* entry(
  state: WalkState,
  { fd, mount }: Folder,
  { name, path }: { name: string; path: string },
): Generator<Piece | undefined, void> {
  const status = statusAt(fd, name);
  switch (status.kind) {
    case "file":
      if (!(yield* asHardLink(state, path, status))) {
        const flags = open.read | open.nonBlocking | open.noTerminal | open.noFollow;
        yield* fileOf(state, path, openAt(fd, name, flags));
      }
      return;
    case "link":
      yield headOf(state, path, status, readlinkAt(fd, name));
      return;
    case "folder": {
      const inner = openAt(fd, name, open.read | open.folder | open.noFollow);
      using _inner = closing(inner);
      const innerStatus = statusAt(inner);
      if (innerStatus.mount !== mount && isView(inner)) return;
      yield headOf(state, `${path}/`, innerStatus);
      yield* below(state, { fd: inner, prefix: `${path}/`, mount: innerStatus.mount });
    }
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
  const limit = limits.archiveEntriesMax;
  if (state.members > limit) {
    const message = `${state.shown} holds more than the ${limit} entries of one archive.`;
    throw new BerthError("bad_request", message, {
      hint: "Archive the folders below it one by one.",
      facts: { field: "path", limit },
    });
  }
  const { mode, uid, gid, modifiedNs } = status;
  const size = kind === "file" ? status.size : 0;
  return headerOf({ path, kind, mode, uid, gid, size, modifiedNs, linkTarget: says });
}
