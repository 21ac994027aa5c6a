/**
 * Moves a file, link or folder to another name in one atomic step.
 */
import type { FileView } from "../../../src/protocol/file.ts";
import { close, readlinkAt, renameAt, statusAt } from "../kernel/openat.ts";
import { mapFileErrors, notAFolder } from "./file-errors.ts";
import { type Entry, openEntry, shownOf, type Target } from "./paths.ts";
import { assertRemovable } from "./remove.ts";
import { fileViewOf } from "./view.ts";

/** Runs with the rights of the calling thread. `protectedFolders` cannot be moved. */
export function move(
  from: Target,
  to: Target,
  { overwrite, protectedFolders }: { overwrite: boolean; protectedFolders: string[] },
): FileView {
  return mapFileErrors(
    from.shown,
    () => {
      const entry = openEntry(from, "from");
      try {
        const status = statusAt(entry.folder, entry.name);
        if (entry.asFolder && status.kind !== "folder") throw notAFolder(from.shown);
        if (status.kind === "folder")
          assertRemovable(entry, status, { target: from, protectedFolders });
        return moveTo(entry, to, overwrite);
      } finally {
        close(entry.folder);
      }
    },
    "from",
  );
}

function moveTo(from: Entry, to: Target, overwrite: boolean): FileView {
  return mapFileErrors(
    to.shown,
    () => {
      const entry = openEntry(to, "to");
      try {
        renameAt(from, entry, { overwrite });
        const { folder, name } = entry;
        const status = statusAt(folder, name);
        const linkTarget = status.kind === "link" ? readlinkAt(folder, name) : undefined;
        return fileViewOf(shownOf(to, entry), status, linkTarget);
      } finally {
        close(entry.folder);
      }
    },
    "to",
  );
}
