/**
 * Owns the way through a tree that is packed: its members in order, each with its header and its contents.
 * Does not own the pace (pack.ts). Everything runs with the rights of the calling thread; what these may not read
 * breaks the archive off, so that no part is taken for the whole. Sockets, pipes and devices are left out.
 */
import { openSync, readSync } from "node:fs";
import { BerthError } from "../../../src/protocol/error-codes.ts";
import { limits } from "../../../src/protocol/limits.ts";
import { isView, openNames, openPlace, type Target, textOf } from "../files/paths.ts";
import { isCode, notAFile, refusalOf } from "../files/refusal.ts";
import { besidePattern } from "../files/unfinished.ts";
import {
  close,
  namesOf,
  nowhere,
  open,
  openAt,
  type Status,
  statusAt,
  targetAt,
} from "../kernel/openat.ts";
import { headerOf } from "./header-write.ts";
import { type Member, padded } from "./member.ts";

/** Whole blocks, or an open file whose first `size` bytes are to come, then zeros up to a whole block. */
export type Piece = Buffer | { fd: number; size: number };

/** Read at once with its header; others are read outside, while other calls are served. */
const smallBytes = 64 * 1024;

type Walk = { shown: string; members: number; linked: Map<string, string> };

export function* walk(target: Target): Generator<Piece | undefined, void> {
  const place = openPlace(nowhere, target.raw);
  const walked: Walk = { shown: target.shown, members: 0, linked: new Map() };
  try {
    const status = statusAt(place);
    if (status.kind === "folder") {
      const fd = openNames(place, ".");
      try {
        yield headOf(walked, "./", status);
        yield* below(walked, { fd, prefix: "./", mount: status.mount });
      } finally {
        close(fd);
      }
    } else if (status.kind === "file") {
      const name = target.raw.slice(target.raw.lastIndexOf("/") + 1);
      const fd = openSync(`/proc/self/fd/${place}`, open.read | open.nonBlocking);
      yield* fileOf(walked, `./${name}`, fd);
    } else throw notAFile(target.shown, "a device, pipe or socket");
  } finally {
    close(place);
  }
}

type Folder = { fd: number; prefix: string; mount: bigint };

function* below(walked: Walk, folder: Folder): Generator<Piece | undefined, void> {
  for (let names = namesOf(folder.fd); names.length > 0; names = namesOf(folder.fd)) {
    for (const { name } of names) {
      if (besidePattern.test(name)) continue;
      const path = folder.prefix + name;
      try {
        yield* entry(walked, folder, { name, path });
      } catch (error) {
        // It has gone meanwhile.
        if (isCode(error, "ENOENT")) continue;
        throw refusalOf(error, `${walked.shown}/${textOf(path.slice(2))}`);
      }
    }
    yield;
  }
}

function* entry(
  walked: Walk,
  { fd, mount }: Folder,
  { name, path }: { name: string; path: string },
): Generator<Piece | undefined, void> {
  const status = statusAt(fd, name);
  switch (status.kind) {
    case "file":
      if (!(yield* asHardLink(walked, path, status))) {
        const flags = open.read | open.nonBlocking | open.noTerminal | open.noFollow;
        yield* fileOf(walked, path, openAt(fd, name, flags));
      }
      return;
    case "link":
      yield headOf(walked, path, status, targetAt(fd, name));
      return;
    case "folder": {
      const inner = openAt(fd, name, open.read | open.folder | open.noFollow);
      try {
        const at = statusAt(inner);
        if (at.mount !== mount && isView(inner)) return;
        yield headOf(walked, `${path}/`, at);
        yield* below(walked, { fd: inner, prefix: `${path}/`, mount: at.mount });
      } finally {
        close(inner);
      }
    }
  }
}

/** A further name of a file that was told already. */
function* asHardLink(walked: Walk, path: string, status: Status): Generator<Piece, boolean> {
  if (status.links < 2) return false;
  const key = `${status.device}:${status.inode}`;
  const known = walked.linked.get(key);
  if (known === undefined) {
    walked.linked.set(key, path);
    return false;
  }
  yield headOf(walked, path, { ...status, kind: "file" }, known, "hard link");
  return true;
}

/** Takes the descriptor over. */
function* fileOf(walked: Walk, path: string, fd: number): Generator<Piece, void> {
  try {
    const status = statusAt(fd);
    if (status.kind !== "file") return;
    const head = headOf(walked, path, status);
    const { size } = status;
    if (size > smallBytes) {
      yield head;
      yield { fd, size };
      return;
    }
    const whole = Buffer.alloc(head.length + padded(size));
    head.copy(whole);
    for (let at = 0; at < size; ) {
      const bytes = readSync(fd, whole, head.length + at, size - at, at);
      if (bytes === 0) break;
      at += bytes;
    }
    yield whole;
  } finally {
    close(fd);
  }
}

function headOf(
  walked: Walk,
  path: string,
  status: Status,
  says = "",
  kind: Member["kind"] = status.kind === "other" ? "file" : status.kind,
): Buffer {
  walked.members += 1;
  if (walked.members > limits.archiveEntriesMax) throw tooMany(walked.shown);
  const { mode, uid, gid, modifiedNs } = status;
  const size = kind === "file" ? status.size : 0;
  return headerOf({ path, kind, mode, uid, gid, size, modifiedNs, says });
}

function tooMany(shown: string): BerthError {
  return new BerthError(
    "bad_request",
    `${shown} holds more than the ${limits.archiveEntriesMax} entries of one archive`,
    {
      hint: "archive folders further down, one by one",
      facts: { field: "path", limit: limits.archiveEntriesMax },
    },
  );
}
