/** Reads the git index: its tree, and everything that a tree cannot express. */
import {
  closeSync,
  existsSync,
  openSync,
  readFileSync,
  readSync,
  renameSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { type Git, joinNul } from "./git.ts";
import { ObjectStore } from "./object-store.ts";
import type { Repository } from "./repository.ts";
import { withIndexCopy } from "./temporary-files.ts";

export type IndexState = {
  /** The tree of all entries that are not in conflict. */
  tree: string;
  /** In the form of `update-index --index-info`: `mode id stage`, a tab, the name. */
  unmerged: string[];
  /**
   * Added with `add -N`: the index's tree lacks them, so they have a tree of their own with empty files; links get a
   * target.
   */
  intended: string[];
  intendedTree: string;
  /** Not checked out (skip-worktree), as in a sparse checkout. */
  skipped: string[];
  /** Marked assume-unchanged. */
  assumed: string[];
  /** Submodules. */
  links: string[];
};

/** The index's checksum identifies it; where checksums are off, its time and size do. */
type CachedIndex = { of: string; staged: IndexState };

export async function readIndex(repository: Repository): Promise<IndexState> {
  const cachePath = join(repository.berthDir, "staged.json");
  const identity = indexIdentity(repository.index);
  const known = readCache(cachePath);
  if (known?.of === identity && (await hasObject(repository, known.staged.tree)))
    return known.staged;
  const staged = await withIndexCopy(repository.index, repository.berthDir, (copy) =>
    scanIndex(repository, copy),
  );
  const temporary = `${cachePath}.${process.pid}`;
  writeFileSync(temporary, JSON.stringify({ of: identity, staged } satisfies CachedIndex));
  renameSync(temporary, cachePath);
  return staged;
}

async function scanIndex(repository: Repository, copy: string): Promise<IndexState> {
  const git = repository.plain.with({ GIT_INDEX_FILE: copy });
  const [unmerged, empty]: [string[], string[]] = [[], []];
  const [skipped, assumed, links]: [string[], string[], string[]] = [[], [], []];
  const store = new ObjectStore(join(repository.berthDir, "objects"), repository.format);
  const emptyBlob = store.blob("");
  for (const entry of await git.list(["ls-files", "-v", "--stage", "-z"])) {
    const [, tag = "", info = "", name = ""] = /^(.) ([^\t]*)\t(.*)$/s.exec(entry) ?? [];
    if (/^160000 .* 0$/.test(info)) links.push(name);
    if (!info.endsWith(" 0")) unmerged.push(`${info}\t${name}`);
    else if (info.includes(emptyBlob)) empty.push(`${info}\t${name}`);
    if (tag.toUpperCase() === "S") skipped.push(name);
    if (tag !== tag.toUpperCase()) assumed.push(name);
  }
  if (unmerged.length > 0) {
    const input = joinNul(new Set(unmerged.map(entryName)));
    await git.run(["update-index", "--force-remove", "-z", "--stdin"], { input });
  }
  const tree = await git.text(["write-tree", "--missing-ok"]);
  const intended = await findIntended(git, tree, empty);
  const target = store.blob("-");
  const withTargets = intended.map((entry) =>
    entry.startsWith("120000 ") ? entry.replace(emptyBlob, target) : entry,
  );
  const intendedTree = await writeTree(repository, withTargets);
  const names = intended.map(entryName);
  return { tree, unmerged, intended: names, intendedTree, skipped, assumed, links };
}

export function entryName(entry: string): string {
  return entry.slice(entry.indexOf("\t") + 1);
}

/** An entry of `add -N` looks like an empty file in the index but is not in its tree. */
async function findIntended(git: Git, tree: string, empty: string[]): Promise<string[]> {
  if (empty.length === 0) return [];
  const there = new Set(await git.list(["ls-tree", "-r", "--name-only", "-z", tree]));
  return empty.filter((entry) => !there.has(entryName(entry)));
}

async function writeTree({ raw, berthDir }: Repository, entries: string[]): Promise<string> {
  return await withIndexCopy(join(berthDir, "no-index"), berthDir, async (fresh) => {
    const git = raw.with({ GIT_INDEX_FILE: fresh });
    if (entries.length > 0) {
      await git.run(["update-index", "-z", "--index-info"], { input: joinNul(entries) });
    }
    return await git.text(["write-tree"]);
  });
}

async function hasObject({ plain, objects, berthDir }: Repository, id: string): Promise<boolean> {
  const path = join(id.slice(0, 2), id.slice(2));
  if ([objects, join(berthDir, "objects")].some((folder) => existsSync(join(folder, path)))) {
    return true;
  }
  return (await plain.run(["cat-file", "-e", id], { okCodes: [1, 128] })).code === 0;
}

function readCache(cachePath: string): CachedIndex | undefined {
  try {
    return JSON.parse(readFileSync(cachePath, "utf8")) as CachedIndex;
  } catch {
    // Missing or broken: it is written again.
    return undefined;
  }
}

const checksumBytes = 32;

function indexIdentity(index: string): string {
  try {
    const { size, mtimeNs, ino } = statSync(index, { bigint: true });
    const end = Buffer.alloc(checksumBytes);
    const file = openSync(index, "r");
    try {
      readSync(file, end, 0, checksumBytes, Math.max(0, Number(size) - checksumBytes));
    } finally {
      closeSync(file);
    }
    return `${ino}.${size}.${mtimeNs}.${end.toString("hex")}`;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return "none";
    throw error;
  }
}
