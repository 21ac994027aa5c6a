/**
 * Chooses where an archive is unpacked. A missing target is unpacked next to its place and renamed. An empty folder is
 * filled from a folder inside it, so that processes in it stay there. Any other folder is filled in place.
 * Everything but `prepare` and `end` runs with the rights of the calling thread.
 */
import { chmodSync } from "node:fs";
import { BerthError } from "../../../src/protocol/error-codes.ts";
import { hasCode } from "../files/file-errors.ts";
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
import { type User, withUserRights } from "../kernel/libc.ts";
import {
  close,
  currentFolder,
  type EntryLocation,
  mkdirAt,
  open,
  openAt,
  readEntries,
  renameAt,
  setModifiedAt,
  statusAt,
  unlinkAt,
} from "../kernel/openat.ts";
import type { EntryAttributes } from "./unpacked-tree.ts";

const newMode = 0o755;
const ownerWrite = 0o200;

interface Staging {
  /** The open folder to unpack into. */
  readonly root: number;
  /** Everything below it is new. */
  readonly isOwn: boolean;
  /** Moves what was unpacked to the target. */
  moveIntoPlace(attributes: EntryAttributes | undefined): void;
  /** Removes what was not moved into place. To be called in any case. */
  end(): Promise<void>;
}

export async function prepare(target: Target, user: User | undefined): Promise<Staging> {
  const folder = withUserRights(user, () => openIfExists(target));
  if (folder === undefined) {
    const location = withUserRights(user, () => followLinks(openEntry(target)));
    return stageNextTo(location, user);
  }
  try {
    if (withUserRights(user, () => isEmpty(folder))) return await stageInside(folder, user);
  } catch (error) {
    close(folder);
    throw error;
  }
  return {
    root: folder,
    isOwn: false,
    moveIntoPlace: (attributes) => setAttributes(folder, attributes),
    end: async () => close(folder),
  };
}

/** Takes over the open folder of the location. */
async function stageNextTo(location: EntryLocation, user: User | undefined): Promise<Staging> {
  const { folder } = location;
  try {
    const staged = await createStagedIn(folder, user);
    return {
      root: staged.root,
      isOwn: true,
      moveIntoPlace(attributes) {
        setAttributes(staged.root, attributes ?? { mode: newMode, modifiedNs: undefined });
        renameAt({ folder, name: staged.name }, location, { overwrite: false });
      },
      end: () => staged.end(folder),
    };
  } catch (error) {
    close(folder);
    throw error;
  }
}

/** Takes over the open folder. */
async function stageInside(folder: number, user: User | undefined): Promise<Staging> {
  const staged = await createStagedIn(folder, user);
  return {
    root: staged.root,
    isOwn: true,
    moveIntoPlace(attributes) {
      moveEntriesUp(staged.root, folder);
      unlinkAt(folder, staged.name, "folder");
      setAttributes(folder, attributes);
    },
    end: () => staged.end(folder),
  };
}

async function createStagedIn(folder: number, user: User | undefined) {
  // A user who may not list the folder has left nothing in it that could be found.
  await inSlices(user, removeStaleLeftovers(folder)).catch(() => {});
  const name = reserveTempName();
  try {
    const root = withUserRights(user, () => {
      mkdirAt(folder, name, 0o700);
      return openAt(folder, name, open.pathOnly | open.folder | open.noFollow);
    });
    return {
      ...{ root, name },
      /** Closes both folders. */
      async end(parent: number) {
        close(root);
        await inSlices(user, removeLeftover({ folder: parent, name }));
        releaseTempName(name);
        close(parent);
      },
    };
  } catch (error) {
    releaseTempName(name);
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
  try {
    chmodSync(`/proc/self/fd/${fd}`, mode | ownerWrite);
    renameAt(from, to, { overwrite: false });
    chmodSync(`/proc/self/fd/${fd}`, mode);
  } finally {
    close(fd);
  }
}

function alreadyExists(name: string): BerthError {
  return new BerthError(
    "file_exists",
    `${textOf(name)} was created while the archive was unpacked.`,
    {
      hint: "Unpack again: a folder that is not empty is filled member by member.",
    },
  );
}

function openIfExists({ raw }: Target): number | undefined {
  try {
    return openPath(currentFolder, raw, open.folder);
  } catch (error) {
    if (hasCode(error, "ENOENT")) return undefined;
    throw error;
  }
}

function isEmpty(folder: number): boolean {
  return allNames(folder).every((name) => tempNamePattern.test(name));
}

function allNames(folder: number): string[] {
  const fd = openNames(folder, ".");
  try {
    const all: string[] = [];
    for (let batch = readEntries(fd); batch.length > 0; batch = readEntries(fd)) {
      for (const { name } of batch) all.push(name);
    }
    return all;
  } finally {
    close(fd);
  }
}

function exists(folder: number, name: string): boolean {
  try {
    statusAt(folder, name);
    return true;
  } catch (error) {
    if (hasCode(error, "ENOENT")) return false;
    throw error;
  }
}

function setAttributes(
  fd: number,
  attributes: { mode: number; modifiedNs: bigint | undefined } | undefined,
): void {
  if (attributes === undefined) return;
  const name = `/proc/self/fd/${fd}`;
  try {
    if (attributes.modifiedNs !== undefined) {
      setModifiedAt({ folder: currentFolder, name }, attributes.modifiedNs, true);
    }
    chmodSync(name, attributes.mode);
  } catch (error) {
    // Commands may write into the folder without owning it, such as the workspace of some images.
    if (!hasCode(error, "EPERM")) throw error;
  }
}
