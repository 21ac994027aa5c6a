/** Removes a file, a link, or a folder with all that it holds. A link is removed, never its target. */
import { chmodSync } from "node:fs";
import { BerthError } from "../../../src/protocol/error-codes.ts";
import { hasCode } from "../kernel/error-codes.ts";
import {
  close,
  closing,
  currentFolder,
  type EntryLocation,
  isSameFile,
  KernelError,
  open,
  openAt,
  readEntries,
  type Status,
  statusAt,
  unlinkAt,
} from "../kernel/openat.ts";
import { notAFolder } from "./file-errors.ts";
import { type Entry, openEntry, openNames, openPath, type Target } from "./paths.ts";

/** Returns how many entries were removed. `protectedFolders` cannot be removed. */
export function* remove(
  target: Target,
  { recursive, protectedFolders }: { recursive: boolean; protectedFolders: string[] },
): Generator<undefined, number> {
  const entry = openEntry(target);
  using _folder = closing(entry.folder);
  const status = statusAt(entry.folder, entry.name);
  if (entry.asFolder && status.kind !== "folder") throw notAFolder(target.shown);
  if (status.kind === "folder") {
    assertRemovable(entry, status, { target, protectedFolders });
    if (recursive) return yield* removeTree(entry, status);
  }
  unlinkAt(entry.folder, entry.name, status.kind === "folder" ? "folder" : "file");
  return 1;
}

/** Moves check this too. */
export function assertRemovable(
  { folder }: Entry,
  status: Status,
  { target, protectedFolders }: { target: Target; protectedFolders: string[] },
): void {
  if (protectedFolders.some((path) => isFolderAt(status, path))) {
    throw notRemovable(target, "is a folder that every sandbox has");
  }
  if (status.mount !== statusAt(folder).mount) throw notRemovable(target, "is a mount point");
}

function isFolderAt(status: Status, path: string): boolean {
  let fd: number;
  try {
    fd = openPath(currentFolder, path);
  } catch {
    return false;
  }
  using _folder = closing(fd);
  return isSameFile(status, statusAt(fd));
}

function notRemovable({ shown }: Target, what: string): BerthError {
  return new BerthError("bad_request", `${shown} ${what} and cannot be removed.`, {
    hint: "Remove its entries one by one.",
    facts: { field: "path", path: shown },
  });
}

type OpenFolder = { name: string; status: Status; names: { name: string }[] };

/**
 * Needs one descriptor however deep the tree is: it goes up by `..`, which must lead to the folder that it came through,
 * unless somebody has moved the tree. `opens`: removes also folders whose mode closes them to their owner.
 */
export function* removeTree(
  top: EntryLocation,
  status: Status,
  { opens = false } = {},
): Generator<undefined, number> {
  let removed = 0;
  const openChild = opens ? openClosed : openNoLink;
  const path: OpenFolder[] = [{ name: top.name, status, names: [] }];
  let fd = openChild(top.folder, top.name);
  try {
    for (let current = path.at(-1); current !== undefined; current = path.at(-1)) {
      yield;
      if (current.names.length === 0) current.names = readEntries(fd);
      const next = current.names.pop();
      if (next !== undefined) {
        if (unlinkUnlessFolder(fd, next.name)) {
          removed += 1;
          continue;
        }
        const below = statusAt(fd, next.name);
        if (below.mount !== current.status.mount) throw new KernelError("remove", "EBUSY");
        path.push({ name: next.name, status: below, names: [] });
        fd = swap(fd, openChild(fd, next.name));
        continue;
      }
      path.pop();
      const above = path.at(-1);
      if (above === undefined) {
        unlinkAt(top.folder, current.name, "folder");
      } else {
        fd = swap(fd, openNames(fd, ".."));
        if (!isSameFile(statusAt(fd), above.status)) throw moved();
        unlinkAt(fd, current.name, "folder");
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

/** Opens a folder whose mode may close it to its owner. */
function openClosed(folder: number, name: string): number {
  const closed = openAt(folder, name, open.pathOnly | open.folder | open.noFollow);
  using _closed = closing(closed);
  chmodSync(`/proc/self/fd/${closed}`, 0o700);
  return openNoLink(folder, name);
}

function swap(old: number, fresh: number): number {
  close(old);
  return fresh;
}

function unlinkUnlessFolder(folder: number, name: string): boolean {
  try {
    unlinkAt(folder, name, "file");
  } catch (error) {
    if (hasCode(error, "EISDIR")) return false;
    if (!hasCode(error, "ENOENT")) throw error;
  }
  return true;
}

function moved(): BerthError {
  return new BerthError("unavailable", "The tree was moved while it was being removed.", {
    hint: "Check what is left, and remove that.",
  });
}
