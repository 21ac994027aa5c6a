/** Describes a file, folder or link as a FileView, with an entity tag that changes with every write. */
import type { FileView } from "../../../src/protocol/file.ts";
import {
  closing,
  currentFolder,
  open,
  readlinkAt,
  type Status,
  statusAt,
} from "../kernel/openat.ts";
import { mapFileErrors } from "./file-errors.ts";
import { openPath, realPathOf, type Target, textOf } from "./paths.ts";

/** Runs with the rights of the calling thread. Describes a link itself, not its target. */
export function stat({ raw, shown }: Target): FileView {
  return mapFileErrors(shown, () => {
    const fd = openPath(currentFolder, raw, open.noFollow);
    using _entry = closing(fd);
    const status = statusAt(fd);
    const path = shown.split("/").includes("..") ? realPathOf(fd) : shown;
    return fileViewOf(path, status, status.kind === "link" ? readlinkAt(fd) : undefined);
  });
}

/** `target` is the target of a link, as raw bytes. */
export function fileViewOf(path: string, status: Status, target?: string): FileView {
  const view: FileView = {
    path,
    kind: status.kind,
    size: status.size,
    mode: status.mode.toString(8).padStart(3, "0"),
    uid: status.uid,
    gid: status.gid,
    modifiedAt: new Date(Number(status.modifiedNs / 1_000_000n)).toISOString(),
  };
  if (status.kind === "file") view.etag = entityTagOf(status);
  if (target !== undefined) view.target = textOf(target);
  return view;
}

/** With its quotes, as in headers. */
export function entityTagOf({ inode, size, modifiedNs }: Status): string {
  return `"${inode}-${size}-${modifiedNs}"`;
}
