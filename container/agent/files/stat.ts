/**
 * Describes one file, folder or link.
 */
import type { FileView } from "../../../src/protocol/file.ts";
import { close, currentFolder, open, readlinkAt, statusAt } from "../kernel/openat.ts";
import { mapFileErrors } from "./file-errors.ts";
import { openPath, realPathOf, type Target } from "./paths.ts";
import { fileViewOf } from "./view.ts";

/** Runs with the rights of the calling thread. Describes a link itself, not its target. */
export function stat({ raw, shown }: Target): FileView {
  return mapFileErrors(shown, () => {
    const fd = openPath(currentFolder, raw, open.noFollow);
    try {
      const status = statusAt(fd);
      const path = shown.split("/").includes("..") ? realPathOf(fd) : shown;
      return fileViewOf(path, status, status.kind === "link" ? readlinkAt(fd) : undefined);
    } finally {
      close(fd);
    }
  });
}
