/**
 * Chooses where an archive is unpacked. A missing target is unpacked next to its place and renamed. An empty folder is
 * filled from a folder inside it, so that processes in it stay there. Any other folder is filled in place.
 * Everything but `prepare` and `end` runs with the rights of the calling thread.
 */
import { chmodSync } from "node:fs";
import { BerthError } from "../../../src/protocol/error-codes.ts";
import {
  followLinks,
  openEntry,
  openNames,
  openPath,
  type Target,
  textOf,
} from "../files/paths.ts";
import { inSlices } from "../files/slices.ts";
import {
  releaseTempName,
  removeLeftover,
  removeStaleLeftovers,
  reserveTempName,
  tempNamePattern,
} from "../files/unfinished.ts";
import { catchCodes, succeedsUnless } from "../kernel/error-codes.ts";
import { type User, withUserRights } from "../kernel/libc.ts";
import {
  close,
  closing,
  currentFolder,
  type EntryLocation,
  mkdirAt,
  open,
  openAt,
  readEntries,
  renameAt,
  statusAt,
  unlinkAt,
} from "../kernel/openat.ts";
import { type FolderAttributes, setAttributes } from "./folder-stack.ts";

const newMode = 0o755;
const ownerWrite = 0o200;

export interface Staging {
  /** The open folder to unpack into. */
  readonly root: number;
  /** Everything below it is new. */
  readonly isOwn: boolean;
  /** Moves what was unpacked to the target. */
  moveIntoPlace(attributes: FolderAttributes | undefined): void;
  /** Removes what was not moved into place. To be called in any case. */
  end(): Promise<void>;
}

export async function prepare(target: Target, user: User | undefined): Promise<Staging> {
  const folder = withUserRights(user, () =>
    catchCodes(["ENOENT"], () => openPath(currentFolder, target.raw, open.folder)),
  );
  if (folder === undefined) {
    const location = withUserRights(user, () => followLinks(openEntry(target)));
    return stageIn(location.folder, user, (staged, attributes) => {
      trySetAttributes(staged.root, attributes ?? { mode: newMode, modifiedNs: undefined });
      renameAt({ folder: location.folder, name: staged.name }, location, { overwrite: false });
    });
  }
  if (withUserRights(user, () => isEmpty(folder))) {
    return stageIn(folder, user, (staged, attributes) => {
      moveEntriesUp(staged.root, folder);
      unlinkAt(folder, staged.name, "folder");
      trySetAttributes(folder, attributes);
    });
  }
  return {
    root: folder,
    isOwn: false,
    moveIntoPlace: (attributes) => trySetAttributes(folder, attributes),
    end: async () => close(folder),
  };
}

type MoveStaged = (
  staged: { root: number; name: string },
  attributes: FolderAttributes | undefined,
) => void;

/** Creates a folder with a temporary name in `folder`, which it takes over. */
async function stageIn(folder: number, user: User | undefined, move: MoveStaged): Promise<Staging> {
  const name = reserveTempName();
  try {
    // A user who may not list the folder has left nothing in it that could be found.
    await inSlices(user, removeStaleLeftovers(folder)).catch(() => {});
    const root = withUserRights(user, () => {
      mkdirAt(folder, name, 0o700);
      return openAt(folder, name, open.pathOnly | open.folder | open.noFollow);
    });
    return {
      root,
      isOwn: true,
      moveIntoPlace: (attributes) => move({ root, name }, attributes),
      async end() {
        close(root);
        await inSlices(user, removeLeftover({ folder, name }));
        releaseTempName(name);
        close(folder);
      },
    };
  } catch (error) {
    releaseTempName(name);
    close(folder);
    throw error;
  }
}

/** One synchronous step: checks all names before it moves the first one. */
function moveEntriesUp(from: number, to: number): void {
  const names = allNames(from);
  for (const name of names) if (exists(to, name)) throw alreadyExists(name);
  for (const name of names) moveEntry({ folder: from, name }, { folder: to, name });
}

/** Moving a folder changes its `..`, so it must be writable for that moment. */
function moveEntry(from: EntryLocation, to: EntryLocation): void {
  const { kind, mode } = statusAt(from.folder, from.name);
  if (kind !== "folder" || (mode & ownerWrite) !== 0) {
    renameAt(from, to, { overwrite: false });
    return;
  }
  const fd = openAt(from.folder, from.name, open.pathOnly | open.folder | open.noFollow);
  using _moved = closing(fd);
  chmodSync(`/proc/self/fd/${fd}`, mode | ownerWrite);
  renameAt(from, to, { overwrite: false });
  chmodSync(`/proc/self/fd/${fd}`, mode);
}

function alreadyExists(name: string): BerthError {
  const message = `${textOf(name)} was created while the archive was unpacked.`;
  const hint = "Unpack again: a folder that is not empty is filled member by member.";
  return new BerthError("file_exists", message, { hint });
}

/** Closes the folder if it cannot be read. */
function isEmpty(folder: number): boolean {
  try {
    return allNames(folder).every((name) => tempNamePattern.test(name));
  } catch (error) {
    close(folder);
    throw error;
  }
}

function allNames(folder: number): string[] {
  const fd = openNames(folder, ".");
  using _folder = closing(fd);
  const all: string[] = [];
  for (let batch = readEntries(fd); batch.length > 0; batch = readEntries(fd)) {
    for (const { name } of batch) all.push(name);
  }
  return all;
}

function exists(folder: number, name: string): boolean {
  return succeedsUnless(["ENOENT"], () => statusAt(folder, name));
}

/** Does nothing where commands may write into the folder without owning it, such as the workspace of some images. */
function trySetAttributes(fd: number, attributes: FolderAttributes | undefined): void {
  if (attributes !== undefined) catchCodes(["EPERM"], () => setAttributes(fd, attributes));
}
