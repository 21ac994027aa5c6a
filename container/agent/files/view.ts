/**
 * Describes a file, folder or link as a FileView, with an entity tag that changes with every write.
 */
import type { FileView } from "../../../src/protocol/file.ts";
import type { Status } from "../kernel/openat.ts";
import { textOf } from "./paths.ts";

/** `target` is the target of a link, as raw bytes. */
export function fileViewOf(path: string, status: Status, target?: string): FileView {
  const view: FileView = {
    path,
    kind: status.kind,
    size: status.size,
    mode: modeText(status.mode),
    uid: status.uid,
    gid: status.gid,
    modifiedAt: new Date(Number(status.modifiedNs / 1_000_000n)).toISOString(),
  };
  if (status.kind === "file") view.etag = entityTagOf(status);
  if (target !== undefined) view.target = textOf(target);
  return view;
}

function modeText(mode: number): string {
  return mode.toString(8).padStart(3, "0");
}

/** With its quotes, as in headers. */
export function entityTagOf({ inode, size, modifiedNs }: Status): string {
  return `"${inode}-${size}-${modifiedNs}"`;
}
