/** Creates folders, with or without the missing ones on the way. */
import { fchmodSync } from "node:fs";
import type { FileView, MkdirCall } from "../../../src/protocol/file.ts";
import { catchCodes, succeedsUnless } from "../kernel/error-codes.ts";
import {
  close,
  closing,
  currentFolder,
  mkdirAt,
  open,
  openAt,
  statusAt,
} from "../kernel/openat.ts";
import { mapFileErrors, notAFolder } from "./file-errors.ts";
import { openEntry, openPath, shownOf, type Target } from "./paths.ts";
import { fileViewOf } from "./view.ts";

const newMode = 0o755;

/** Runs with the rights of the calling thread. */
export function mkdir(target: Target, call: MkdirCall): { view: FileView; isNew: boolean } {
  return mapFileErrors(target.shown, () => {
    if (call.parents) makeFolders(parentOf(target.raw));
    const entry = openEntry(target);
    using _folder = closing(entry.folder);
    const isNew = makeFolder(entry.folder, entry.name, call.mode, call.parents);
    const path = shownOf(target, entry);
    const fd = openPath(entry.folder, entry.name);
    using _made = closing(fd);
    const status = statusAt(fd);
    if (status.kind !== "folder") throw notAFolder(path);
    return { view: fileViewOf(path, status), isNew };
  });
}

export function parentOf(raw: string): string {
  return raw.replace(/\/*[^/]*\/*$/, "") || "/";
}

/** Creates `raw` and all missing folders on the way to it. */
export function makeFolders(raw: string): void {
  let folder = openPath(currentFolder, "/", open.folder);
  try {
    for (const name of raw.split("/")) {
      if (name === "" || name === ".") continue;
      const next = openOrMake(folder, name);
      close(folder);
      folder = next;
    }
  } finally {
    close(folder);
  }
}

function openOrMake(folder: number, name: string): number {
  const existing = catchCodes(["ENOENT"], () => openPath(folder, name, open.folder));
  if (existing !== undefined) return existing;
  makeFolder(folder, name, undefined, true);
  return openPath(folder, name, open.folder);
}

/** False: it exists. */
function makeFolder(
  folder: number,
  name: string,
  mode: string | undefined,
  mayExist: boolean,
): boolean {
  const make = () => mkdirAt(folder, name, mode === undefined ? newMode : 0o700);
  if (!succeedsUnless(mayExist ? ["EEXIST"] : [], make)) return false;
  // Set explicitly, because the umask is the one of the agent.
  const made = openAt(folder, name, open.read | open.folder | open.noFollow);
  using _made = closing(made);
  fchmodSync(made, mode === undefined ? newMode : Number.parseInt(mode, 8));
  return true;
}
