/**
 * Owns removing a file, a link, or a folder with all that it holds; a link is removed, never what it leads to.
 * Does not own how long a piece of it may take (slices.ts).
 */
import { chmodSync } from "node:fs";
import { BerthError } from "../../../src/protocol/error-codes.ts";
import {
  close,
  isSame,
  namesOf,
  nowhere,
  open,
  openAt,
  type Spot,
  type Status,
  statusAt,
  unlinkAt,
} from "../kernel/openat.ts";
import { type Entry, openEntry, openNames, openPlace, type Target } from "./paths.ts";
import { isCode, notAFolder } from "./refusal.ts";

type Level = { name: string; status: Status; names: { name: string }[] };

/** Answers how many were removed. `kept` are folders that must stay. */
export function* remove(
  target: Target,
  { recursive, kept }: { recursive: boolean; kept: string[] },
): Generator<undefined, number> {
  const entry = openEntry(target);
  try {
    const status = statusAt(entry.folder, entry.name);
    if (entry.asFolder && status.kind !== "folder") throw notAFolder(target.shown);
    if (status.kind !== "folder") {
      unlinkAt(entry.folder, entry.name, "file");
      return 1;
    }
    demandRemovable(entry, status, { target, kept });
    if (recursive) return yield* removeTree(entry, status);
    unlinkAt(entry.folder, entry.name, "folder");
    return 1;
  } finally {
    close(entry.folder);
  }
}

/** Also of moves. */
export function demandRemovable(
  { folder }: Entry,
  status: Status,
  { target, kept }: { target: Target; kept: string[] },
): void {
  if (kept.some((path) => isPlace(status, path))) {
    throw staying(target, "is a folder that every sandbox has");
  }
  if (status.mount !== statusAt(folder).mount) throw staying(target, "is a mount point");
}

function isPlace(status: Status, path: string): boolean {
  let fd: number;
  try {
    fd = openPlace(nowhere, path);
  } catch {
    return false;
  }
  try {
    return isSame(status, statusAt(fd));
  } finally {
    close(fd);
  }
}

function staying({ shown }: Target, what: string): BerthError {
  return new BerthError("bad_request", `${shown} ${what}; it stays`, {
    hint: "remove what it holds, entry by entry",
    facts: { field: "path", path: shown },
  });
}

/**
 * One descriptor, however deep the tree is: the way up is `..`, and must lead to the folder that the way down came
 * through, or somebody has moved it meanwhile. `opens`: folders that are closed to their owner too.
 */
export function* removeTree(
  top: Spot,
  status: Status,
  { opens = false } = {},
): Generator<undefined, number> {
  let removed = 0;
  const openChild = opens ? openOwn : openNoLink;
  const levels: Level[] = [{ name: top.name, status, names: [] }];
  let fd = openChild(top.folder, top.name);
  try {
    for (let level = levels.at(-1); level !== undefined; level = levels.at(-1)) {
      yield;
      if (level.names.length === 0) level.names = namesOf(fd);
      const next = level.names.pop();
      if (next !== undefined) {
        if (unlinkUnlessFolder(fd, next.name)) {
          removed += 1;
          continue;
        }
        const below = statusAt(fd, next.name);
        if (below.mount !== level.status.mount) throw inUse();
        levels.push({ name: next.name, status: below, names: [] });
        fd = swap(fd, openChild(fd, next.name));
        continue;
      }
      levels.pop();
      const above = levels.at(-1);
      if (above === undefined) {
        unlinkAt(top.folder, level.name, "folder");
      } else {
        fd = swap(fd, openNames(fd, ".."));
        if (!isSame(statusAt(fd), above.status)) throw moved();
        unlinkAt(fd, level.name, "folder");
      }
      removed += 1;
    }
    return removed;
  } finally {
    close(fd);
  }
}

function openNoLink(folder: number, name: string): number {
  return openAt(folder, name, open.read | open.folder | open.noFollow);
}

/** Also where its mode is closed to its owner. */
function openOwn(folder: number, name: string): number {
  const place = openAt(folder, name, open.placeOnly | open.folder | open.noFollow);
  try {
    chmodSync(`/proc/self/fd/${place}`, 0o700);
  } finally {
    close(place);
  }
  return openNoLink(folder, name);
}

function swap(old: number, fresh: number): number {
  close(old);
  return fresh;
}

function unlinkUnlessFolder(folder: number, name: string): boolean {
  try {
    unlinkAt(folder, name, "file");
    return true;
  } catch (error) {
    if (isCode(error, "EISDIR")) return false;
    if (isCode(error, "ENOENT")) return true;
    throw error;
  }
}

function inUse(): Error {
  return Object.assign(new Error("a mount point"), { code: "EBUSY" });
}

function moved(): BerthError {
  return new BerthError("unavailable", "the tree was moved while it was being removed", {
    hint: "look at what is left, then remove that",
  });
}
