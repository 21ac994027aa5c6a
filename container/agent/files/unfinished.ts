/**
 * Writes files and folders under no name, or a temporary one, until they are complete, and removes what an agent that was
 * killed left under such names. Everything runs with the rights of the calling thread.
 */

import { hasCode, succeedsUnless } from "../kernel/error-codes.ts";
import {
  close,
  closing,
  type EntryLocation,
  linkAt,
  open,
  openAt,
  readEntries,
  renameAt,
  statusAt,
  unlinkAt,
} from "../kernel/openat.ts";
import { openNames } from "./paths.ts";
import { removeTree } from "./remove.ts";

/** Entries with such names are neither watched nor listed. */
export const tempNamePattern = /^\.berth-[a-z0-9]{16}$/;

/** Names of this incarnation. Any other was left by an agent that was killed. */
const ownNames = new Set<string>();

export function reserveTempName(): string {
  const name = `.berth-${crypto.randomUUID().replaceAll("-", "").slice(0, 16)}`;
  ownNames.add(name);
  return name;
}

export function releaseTempName(name: string): void {
  ownNames.delete(name);
}

export class UnfinishedFile {
  readonly fd: number;
  readonly #folder: number;
  /** Undefined: the file has no name yet. */
  #name: string | undefined;

  /** The caller keeps `folder` open until `end`. */
  constructor(folder: number) {
    this.#folder = folder;
    try {
      this.fd = openAt(folder, ".", open.write | open.unnamed, 0o600);
    } catch (error) {
      // Older overlays, and file systems over a network, have no unnamed files.
      if (!hasCode(error, "EOPNOTSUPP", "EISDIR", "ENOENT")) throw error;
      const name = reserveTempName();
      this.#name = name;
      const flags = open.write | open.create | open.exclusive | open.noFollow;
      try {
        this.fd = openAt(folder, name, flags, 0o600);
      } catch (failed) {
        releaseTempName(name);
        throw failed;
      }
    }
  }

  /** Gives the file its name in one step, replacing what may be there. */
  moveIntoPlace(location: EntryLocation, { overwrite }: { overwrite: boolean }): void {
    if (this.#name === undefined && this.#linkIfFree(location, overwrite)) return;
    const name = this.#name ?? this.#linkTempName();
    renameAt({ folder: this.#folder, name }, location, { overwrite });
    releaseTempName(name);
    this.#name = undefined;
  }

  /** Closes the file, and removes it if it was not moved into place. */
  end(): void {
    close(this.fd);
    const name = this.#name;
    if (name === undefined) return;
    this.#name = undefined;
    releaseTempName(name);
    removeTempFile({ folder: this.#folder, name });
  }

  /** False: the name is taken, and may be replaced. */
  #linkIfFree(location: EntryLocation, overwrite: boolean): boolean {
    return succeedsUnless(overwrite ? ["EEXIST"] : [], () => linkAt(this.fd, location));
  }

  #linkTempName(): string {
    const name = reserveTempName();
    this.#name = name;
    linkAt(this.fd, { folder: this.#folder, name });
    return name;
  }
}

function removeTempFile(location: EntryLocation): void {
  try {
    unlinkAt(location.folder, location.name, "file");
  } catch (error) {
    if (!hasCode(error, "ENOENT")) console.error("an unfinished file could not be removed:", error);
  }
}

/** Removes what an agent that was killed left in this folder. */
export function* removeStaleLeftovers(folder: number): Generator<undefined, void> {
  const fd = openNames(folder, ".");
  using _folder = closing(fd);
  const stale: string[] = [];
  for (let names = readEntries(fd); names.length > 0; names = readEntries(fd)) {
    for (const { name } of names) if (isStale(name)) stale.push(name);
    yield;
  }
  for (const name of stale) yield* removeLeftover({ folder: fd, name });
}

function isStale(name: string): boolean {
  return tempNamePattern.test(name) && !ownNames.has(name);
}

/** Removes a temporary file or tree, whatever its modes. What cannot be removed stays. */
export function* removeLeftover(location: EntryLocation): Generator<undefined, void> {
  try {
    const status = statusAt(location.folder, location.name);
    if (status.kind === "folder") yield* removeTree(location, status, { opens: true });
    else unlinkAt(location.folder, location.name, "file");
  } catch (error) {
    if (!hasCode(error, "ENOENT")) console.error("a leftover could not be removed:", error);
  }
}
