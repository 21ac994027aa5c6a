/**
 * Owns the difference of two trees in memory, as simply as it can be said: what the engine's answer must equal.
 * Runs in Node and in workerd.
 */

import type { Changes } from "../../src/protocol/changes.ts";
import { ChangeList } from "../../src/protocol/internal/change-list.ts";
import { shownPath } from "../../src/protocol/internal/shown-path.ts";

/** `says` is everything of it that counts, in words. `bytes` only of a file. */
export type Entry = { isFolder: boolean; says: string; bytes: number };
/** By path below /workspace, which has no name; one character for each byte. */
export type Entries = Map<string, Entry>;

export function changesBetween(from: Entries | undefined, to: Entries, listMax: number): Changes {
  const older: Entries = from ?? new Map([...to].filter(([path]) => path === ""));
  const list = new ChangeList(listMax);
  for (const [path, entry] of to) {
    const before = older.get(path);
    if (before === undefined) {
      if (isTold(to, path, entry)) list.add("added", shownAs(path, entry), entry.bytes);
    } else if (before.isFolder !== entry.isFolder || before.says !== entry.says) {
      list.add("modified", shownAs(path, entry), entry.bytes);
    }
  }
  for (const [path, entry] of older) {
    if (!to.has(path) && isTold(older, path, entry)) list.add("deleted", shownAs(path, entry));
  }
  return list.done();
}

/** A folder that holds something is told by what it holds. */
function isTold(entries: Entries, path: string, { isFolder }: Entry): boolean {
  return !isFolder || ![...entries.keys()].some((one) => one.startsWith(`${path}/`));
}

function shownAs(path: string, { isFolder }: Entry): string {
  if (path === "") return "./";
  return isFolder ? `${shownPath(path)}/` : shownPath(path);
}
