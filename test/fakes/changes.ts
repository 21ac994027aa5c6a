/**
 * The difference of two trees in memory, in the simplest form: the engine's result must equal it. Runs in Node and in
 * workerd.
 */
import type { Changes } from "../../src/protocol/checkpoint.ts";
import { ChangeList } from "../../src/protocol/internal/change-list.ts";
import { escapePath } from "../../src/protocol/internal/escape-path.ts";

/** `content` is everything of an entry that counts, as text. `bytes` only for a file. */
export type TreeEntry = { isFolder: boolean; content: string; bytes: number };
/** By path below /workspace, whose own path is empty; one character per byte. */
export type TreeEntries = Map<string, TreeEntry>;

export function changesBetween(
  from: TreeEntries | undefined,
  to: TreeEntries,
  listMax: number,
): Changes {
  const older: TreeEntries = from ?? new Map([...to].filter(([path]) => path === ""));
  const list = new ChangeList(listMax);
  for (const [path, entry] of to) {
    const before = older.get(path);
    if (before === undefined) {
      if (isListed(to, path, entry)) list.add("added", listedPath(path, entry), entry.bytes);
    } else if (before.isFolder !== entry.isFolder || before.content !== entry.content) {
      list.add("modified", listedPath(path, entry), entry.bytes);
    }
  }
  for (const [path, entry] of older) {
    if (!to.has(path) && isListed(older, path, entry)) list.add("deleted", listedPath(path, entry));
  }
  return list.result();
}

/** A folder with content is listed by its content. */
function isListed(entries: TreeEntries, path: string, { isFolder }: TreeEntry): boolean {
  return !isFolder || ![...entries.keys()].some((other) => other.startsWith(`${path}/`));
}

function listedPath(path: string, { isFolder }: TreeEntry): string {
  if (path === "") return "./";
  return isFolder ? `${escapePath(path)}/` : escapePath(path);
}
