/** Moves a file, link or folder to another name in one atomic step. */
import type { FileView } from "../../../src/protocol/file.ts";
import { closing, readlinkAt, renameAt, statusAt } from "../kernel/openat.ts";
import { mapFileErrors, notAFolder } from "./file-errors.ts";
import { type Entry, openEntry, shownOf, type Target } from "./paths.ts";
import { assertRemovable } from "./remove.ts";
import { fileViewOf } from "./view.ts";

type MoveOptions = { overwrite: boolean; protectedFolders: string[] };

/** Runs with the rights of the calling thread. `protectedFolders` cannot be moved. */
export function move(from: Target, to: Target, options: MoveOptions): FileView {
  const { overwrite, protectedFolders } = options;
  const moveEntry = () => {
    const entry = openEntry(from, "from");
    using _folder = closing(entry.folder);
    const status = statusAt(entry.folder, entry.name);
    if (entry.asFolder && status.kind !== "folder") throw notAFolder(from.shown);
    if (status.kind === "folder")
      assertRemovable(entry, status, { target: from, protectedFolders });
    return mapFileErrors(to.shown, () => moveTo(entry, to, overwrite), "to");
  };
  return mapFileErrors(from.shown, moveEntry, "from");
}

function moveTo(from: Entry, to: Target, overwrite: boolean): FileView {
  const entry = openEntry(to, "to");
  using _folder = closing(entry.folder);
  renameAt(from, entry, { overwrite });
  const { folder, name } = entry;
  const status = statusAt(folder, name);
  const linkTarget = status.kind === "link" ? readlinkAt(folder, name) : undefined;
  return fileViewOf(shownOf(to, entry), status, linkTarget);
}
