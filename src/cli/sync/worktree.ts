/** Reads the tree of the files on disk: what git tracks or would show as untracked. Skips unchanged files. */
import { renameSync } from "node:fs";
import { join } from "node:path";
import { joinNul, largeFiles } from "./git.ts";
import { entryName } from "./index-state.ts";
import type { Repository } from "./repository.ts";
import { withIndexCopy } from "./temporary-files.ts";
import { lstatIfExists, parentFolders, toPath } from "./working-file.ts";

type Worktree = {
  tree: string;
  /** Nested repositories: submodules and others, without a slash at the end. */
  nested: string[];
  /** Ignored by now: no longer part of the tree, but they stay on disk. */
  released: string[];
  /** Tracked but missing on disk. */
  absent: string[];
};

export async function readWorktree(repository: Repository): Promise<Worktree> {
  const ownIndex = join(repository.berthDir, "index");
  return await withIndexCopy(ownIndex, repository.berthDir, async (copy) => {
    const raw = repository.raw.with({ GIT_INDEX_FILE: copy });
    const removeFromIndex = (names: string[]) =>
      raw.run(["update-index", "--force-remove", "-z", "--stdin"], { input: joinNul(names) });
    let scan = await scanWorktree(repository, copy);
    const { nestedEntries } = scan;
    if (nestedEntries.length > 0) {
      await removeFromIndex(nestedEntries);
      scan = await scanWorktree(repository, copy);
    }
    if (scan.removed.length > 0) await removeFromIndex(scan.removed);
    if (scan.changed.length > 0) {
      const input = joinNul(scan.changed);
      await raw.run(["update-index", "--add", "--remove", "--replace", "-z", "--stdin"], {
        input,
        env: largeFiles,
      });
    }
    const tree = await raw.text(["write-tree"]);
    if (nestedEntries.length + scan.removed.length + scan.changed.length > 0)
      renameSync(copy, ownIndex);
    const { nested, released, absent } = scan;
    return { tree, nested, released, absent };
  });
}

type WorktreeScan = Omit<Worktree, "tree"> & {
  changed: string[];
  removed: string[];
  /** Entries of our index where a nested repository is now. */
  nestedEntries: string[];
};

const ignored = ["ls-files", "-z", "--cached", "--ignored", "--exclude-standard"];
const deleted = ["ls-files", "-z", "--deleted"];
const others = ["ls-files", "-z", "--others", "--exclude-standard"];

async function scanWorktree({ top, plain, raw }: Repository, index: string): Promise<WorktreeScan> {
  const env = { GIT_INDEX_FILE: index };
  const [untracked, entries, differing, tracked, described, absent] = await Promise.all([
    plain.list(others, { env }),
    raw.list(["ls-files", "--stage", "-z"], { env }),
    raw.list(["diff-files", "--name-status", "--no-renames", "-z"], { env }),
    plain.list(ignored),
    plain.list(ignored, { env }),
    plain.list(deleted),
  ]);
  const changed = untracked.filter((name) => !name.endsWith("/"));
  const nested = untracked.filter((name) => name.endsWith("/")).map((name) => name.slice(0, -1));
  const removed: string[] = [];
  for (let i = 0; i + 1 < differing.length; i += 2) {
    const name = differing[i + 1] ?? "";
    (differing[i] === "D" ? removed : changed).push(name);
  }
  const [isTracked, isDescribed] = [new Set(tracked), new Set(described)];
  const released = described.filter((name) => !isTracked.has(name));
  const isBelow = (name: string) => nested.some((folder) => name.startsWith(`${folder}/`));
  const forced = tracked.filter(
    (name) => !isDescribed.has(name) && !isBelow(name) && isFileOrLink(top, name),
  );
  const isReleased = new Set(released);
  return {
    changed: [...changed.filter((name) => !isReleased.has(name)), ...forced],
    removed: [...removed, ...released],
    nested,
    released,
    absent,
    nestedEntries: findNestedEntries(top, entries, new Set([...removed, ...changed])),
  };
}

/** git does not notice a repository below tracked names, so these are removed from our index first. */
function findNestedEntries(top: string, entries: string[], differing: Set<string>): string[] {
  const isRepository = (name: string) => lstatIfExists(toPath(top, `${name}/.git`)) !== undefined;
  const checked = new Map<string, boolean>();
  const isWithin = (folder: string): boolean => {
    if (folder === "") return false;
    const known = checked.get(folder);
    if (known !== undefined) return known;
    const found = isRepository(folder) || isWithin(parentFolder(folder));
    checked.set(folder, found);
    return found;
  };
  return entries
    .filter((entry) => {
      const name = entryName(entry);
      // A nested repository is not one of our files: this one was added while it was being created.
      if (entry.startsWith("160000 ")) return true;
      return isWithin(parentFolder(name)) || (differing.has(name) && isRepository(name));
    })
    .map(entryName);
}

function parentFolder(name: string): string {
  return name.slice(0, Math.max(0, name.lastIndexOf("/")));
}

/** A file or a link, and not behind a link: that would belong to another name. */
function isFileOrLink(top: string, name: string): boolean {
  const find = (below: string) => lstatIfExists(toPath(top, below));
  if (!parentFolders(name).every((folder) => find(folder)?.isDirectory())) return false;
  const found = find(name);
  return found !== undefined && (found.isFile() || found.isSymbolicLink());
}
