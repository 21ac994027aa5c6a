/**
 * Owns moving a file, link or folder to another name, in one step that nobody can see half of.
 */
import type { FileView } from "../../../src/protocol/file.ts";
import { close, renameAt, statusAt, targetAt } from "../kernel/openat.ts";
import { type Entry, openEntry, shownOf, type Target } from "./paths.ts";
import { notAFolder, refusing } from "./refusal.ts";
import { demandRemovable } from "./remove.ts";
import { viewOf } from "./view.ts";

/** With the rights of the calling thread. `kept` are folders that must stay. */
export function move(
  from: Target,
  to: Target,
  { overwrite, kept }: { overwrite: boolean; kept: string[] },
): FileView {
  return refusing(
    from.shown,
    () => {
      const entry = openEntry(from, "from");
      try {
        const status = statusAt(entry.folder, entry.name);
        if (entry.asFolder && status.kind !== "folder") throw notAFolder(from.shown);
        if (status.kind === "folder") demandRemovable(entry, status, { target: from, kept });
        return moveTo(entry, to, overwrite);
      } finally {
        close(entry.folder);
      }
    },
    "from",
  );
}

function moveTo(from: Entry, to: Target, overwrite: boolean): FileView {
  return refusing(
    to.shown,
    () => {
      const entry = openEntry(to, "to");
      try {
        renameAt(from, entry, { overwrite });
        const { folder, name } = entry;
        const status = statusAt(folder, name);
        const says = status.kind === "link" ? targetAt(folder, name) : undefined;
        return viewOf(shownOf(to, entry), status, says);
      } finally {
        close(entry.folder);
      }
    },
    "to",
  );
}
