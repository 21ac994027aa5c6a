/**
 * Owns making folders, with or without the missing ones on the way.
 */
import { fchmodSync } from "node:fs";
import type { FileView, MkdirCall } from "../../../src/protocol/file.ts";
import { close, mkdirAt, nowhere, open, openAt, statusAt } from "../kernel/openat.ts";
import { openEntry, openPlace, shownOf, type Target } from "./paths.ts";
import { isCode, notAFolder, refusing } from "./refusal.ts";
import { viewOf } from "./view.ts";

const newMode = 0o755;

/** With the rights of the calling thread. */
export function mkdir(target: Target, call: MkdirCall): { view: FileView; isNew: boolean } {
  return refusing(target.shown, () => {
    if (call.parents) makeFolders(holderOf(target.raw));
    const entry = openEntry(target);
    try {
      const isNew = makeOne(entry.folder, entry.name, call.mode, call.parents);
      const path = shownOf(target, entry);
      const fd = openPlace(entry.folder, entry.name);
      try {
        const status = statusAt(fd);
        if (status.kind !== "folder") throw notAFolder(path);
        return { view: viewOf(path, status), isNew };
      } finally {
        close(fd);
      }
    } finally {
      close(entry.folder);
    }
  });
}

export function holderOf(raw: string): string {
  return raw.replace(/\/*[^/]*\/*$/, "") || "/";
}

/** All that are missing on the way to `raw`, and the last one. */
export function makeFolders(raw: string): void {
  let folder = openPlace(nowhere, "/", open.folder);
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
  try {
    return openPlace(folder, name, open.folder);
  } catch (error) {
    if (!isCode(error, "ENOENT")) throw error;
  }
  makeOne(folder, name, undefined, true);
  return openPlace(folder, name, open.folder);
}

/** False: it was there. */
function makeOne(
  folder: number,
  name: string,
  mode: string | undefined,
  mayBeThere: boolean,
): boolean {
  try {
    mkdirAt(folder, name, mode === undefined ? newMode : 0o700);
  } catch (error) {
    if (mayBeThere && isCode(error, "EEXIST")) return false;
    throw error;
  }
  // The mask for new files is the agent's own: a mode that was asked for is set.
  const made = openAt(folder, name, open.read | open.folder | open.noFollow);
  try {
    fchmodSync(made, mode === undefined ? newMode : Number.parseInt(mode, 8));
  } finally {
    close(made);
  }
  return true;
}
