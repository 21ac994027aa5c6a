/**
 * Owns where an archive is unpacked: what is not there yet beside its place, then renamed; an empty folder in a
 * folder inside of it, whose entries then move up, so that who stands in it still does; any other in place.
 * Does not own what is unpacked. Everything but `prepare` and `undo` runs with the rights of the calling thread.
 */
import { chmodSync } from "node:fs";
import { BerthError } from "../../../src/protocol/error-codes.ts";
import { follow, openEntry, openNames, openPlace, type Target, textOf } from "../files/paths.ts";
import { isCode } from "../files/refusal.ts";
import { inSlices } from "../files/slices.ts";
import {
  besidePattern,
  freeBesideName,
  removeStale,
  removeWhole,
  takeBesideName,
} from "../files/unfinished.ts";
import { type User, withRightsOf } from "../kernel/libc.ts";
import {
  close,
  mkdirAt,
  namesOf,
  nowhere,
  open,
  openAt,
  renameAt,
  type Spot,
  setModifiedAt,
  statusAt,
  unlinkAt,
} from "../kernel/openat.ts";
import type { Final } from "./unpacked-tree.ts";

const newMode = 0o755;
const ownerWrite = 0o200;

export interface Staging {
  /** The open folder to unpack into. */
  readonly root: number;
  /** Nothing of what is below it was there before. */
  readonly isOwn: boolean;
  /** What was unpacked takes its place. */
  take(own: Final | undefined): void;
  /** Also after `take`, which then leaves nothing to undo. */
  end(): Promise<void>;
}

export async function prepare(target: Target, user: User | undefined): Promise<Staging> {
  const place = withRightsOf(user, () => placeIf(target));
  if (place === undefined) {
    const spot = withRightsOf(user, () => follow(openEntry(target)));
    return beside(spot, user);
  }
  try {
    if (withRightsOf(user, () => isEmpty(place))) return await inside(place, user);
  } catch (error) {
    close(place);
    throw error;
  }
  return {
    root: place,
    isOwn: false,
    take: (own) => setOwn(place, own),
    end: async () => close(place),
  };
}

/** Takes the folder of the spot over. */
async function beside(spot: Spot, user: User | undefined): Promise<Staging> {
  const { folder } = spot;
  try {
    const staged = await stagedIn(folder, user);
    return {
      root: staged.root,
      isOwn: true,
      take(own) {
        setOwn(staged.root, own ?? { mode: newMode, modifiedNs: undefined });
        renameAt({ folder, name: staged.name }, spot, { overwrite: false });
      },
      end: () => staged.end(folder),
    };
  } catch (error) {
    close(folder);
    throw error;
  }
}

/** Takes the place over. */
async function inside(place: number, user: User | undefined): Promise<Staging> {
  const staged = await stagedIn(place, user);
  return {
    root: staged.root,
    isOwn: true,
    take(own) {
      moveUp(staged.root, place);
      unlinkAt(place, staged.name, "folder");
      setOwn(place, own);
    },
    end: () => staged.end(place),
  };
}

async function stagedIn(folder: number, user: User | undefined) {
  // Whoever may not list it has left nothing that could be found.
  await inSlices(user, removeStale(folder)).catch(() => {});
  const name = takeBesideName();
  try {
    const root = withRightsOf(user, () => {
      mkdirAt(folder, name, 0o700);
      return openAt(folder, name, open.placeOnly | open.folder | open.noFollow);
    });
    return {
      ...{ root, name },
      /** Closes both. */
      async end(holder: number) {
        close(root);
        await inSlices(user, removeWhole({ folder: holder, name }));
        freeBesideName(name);
        close(holder);
      },
    };
  } catch (error) {
    freeBesideName(name);
    throw error;
  }
}

/** One synchronous piece: all names are looked at before the first one moves. */
function moveUp(from: number, to: number): void {
  const names = allNames(from);
  for (const name of names) if (isThere(to, name)) throw exists(name);
  for (const name of names) moveOne({ folder: from, name }, { folder: to, name });
}

/** A folder that gets another holder must let its owner write for that moment. */
function moveOne(from: Spot, to: Spot): void {
  const { kind, mode } = statusAt(from.folder, from.name);
  if (kind !== "folder" || (mode & ownerWrite) !== 0) {
    renameAt(from, to, { overwrite: false });
    return;
  }
  const fd = openAt(from.folder, from.name, open.placeOnly | open.folder | open.noFollow);
  try {
    chmodSync(`/proc/self/fd/${fd}`, mode | ownerWrite);
    renameAt(from, to, { overwrite: false });
    chmodSync(`/proc/self/fd/${fd}`, mode);
  } finally {
    close(fd);
  }
}

function exists(name: string): BerthError {
  return new BerthError("file_exists", `${textOf(name)} came to be there while it was unpacked`, {
    hint: "unpack once more: into a folder that is not empty, member by member",
  });
}

function placeIf({ raw }: Target): number | undefined {
  try {
    return openPlace(nowhere, raw, open.folder);
  } catch (error) {
    if (isCode(error, "ENOENT")) return undefined;
    throw error;
  }
}

function isEmpty(place: number): boolean {
  return allNames(place).every((name) => besidePattern.test(name));
}

function allNames(place: number): string[] {
  const fd = openNames(place, ".");
  try {
    const all: string[] = [];
    for (let some = namesOf(fd); some.length > 0; some = namesOf(fd)) {
      for (const { name } of some) all.push(name);
    }
    return all;
  } finally {
    close(fd);
  }
}

function isThere(folder: number, name: string): boolean {
  try {
    statusAt(folder, name);
    return true;
  } catch (error) {
    if (isCode(error, "ENOENT")) return false;
    throw error;
  }
}

function setOwn(
  fd: number,
  own: { mode: number; modifiedNs: bigint | undefined } | undefined,
): void {
  if (own === undefined) return;
  const name = `/proc/self/fd/${fd}`;
  try {
    if (own.modifiedNs !== undefined) {
      setModifiedAt({ folder: nowhere, name }, own.modifiedNs, true);
    }
    chmodSync(name, own.mode);
  } catch (error) {
    // The folder of somebody else that the command may write into, such as the workspace of some images.
    if (!isCode(error, "EPERM")) throw error;
  }
}
