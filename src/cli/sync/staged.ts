/**
 * Owns what the index says: its tree, and all of it that a tree cannot say.
 * Does not own the files on the disk (worktree.ts).
 */
import {
  closeSync,
  openSync,
  readFileSync,
  readSync,
  renameSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { type Git, listed } from "./git.ts";
import { withCopy } from "./index-copy.ts";
import { ObjectStore } from "./object-store.ts";
import type { Repository } from "./repository.ts";

export type Staged = {
  /** Of all that is not in conflict. */
  tree: string;
  /** As `update-index --index-info` takes it: `mode id stage`, a tab, the name. */
  unmerged: string[];
  /** Announced with `add -N`: no tree of the index has them, so they stand in one of their own, empty; but links lead somewhere. */
  intended: string[];
  intendedTree: string;
  /** Not checked out, as in a sparse checkout. */
  skipped: string[];
  /** Those that git was told not to look at. */
  assumed: string[];
  /** Submodules. */
  links: string[];
};

/** An index ends with its own checksum; where that is switched off, its time and size tell it from another. */
type Remembered = { of: string; staged: Staged };

export async function readStaged(repository: Repository): Promise<Staged> {
  const memory = join(repository.ours, "staged.json");
  const of = identity(repository.index);
  const known = remembered(memory);
  if (known?.of === of && (await has(repository, known.staged.tree))) return known.staged;
  const staged = await withCopy(repository.index, repository.ours, (copy) =>
    look(repository, copy),
  );
  const temporary = `${memory}.${process.pid}`;
  writeFileSync(temporary, JSON.stringify({ of, staged } satisfies Remembered));
  renameSync(temporary, memory);
  return staged;
}

async function look(repository: Repository, copy: string): Promise<Staged> {
  const git = repository.plain.with({ GIT_INDEX_FILE: copy });
  const [unmerged, empty]: [string[], string[]] = [[], []];
  const [skipped, assumed, links]: [string[], string[], string[]] = [[], [], []];
  const store = new ObjectStore(join(repository.ours, "objects"), repository.format);
  const nothing = store.blob("");
  for (const entry of await git.list(["ls-files", "-v", "--stage", "-z"])) {
    const [, tag = "", what = "", name = ""] = /^(.) ([^\t]*)\t(.*)$/s.exec(entry) ?? [];
    if (/^160000 .* 0$/.test(what)) links.push(name);
    if (!what.endsWith(" 0")) unmerged.push(`${what}\t${name}`);
    else if (what.includes(nothing)) empty.push(`${what}\t${name}`);
    if (tag.toUpperCase() === "S") skipped.push(name);
    if (tag !== tag.toUpperCase()) assumed.push(name);
  }
  if (unmerged.length > 0) {
    const input = listed(new Set(unmerged.map(nameOf)));
    await git.run(["update-index", "--force-remove", "-z", "--stdin"], { input });
  }
  const tree = await git.text(["write-tree", "--missing-ok"]);
  const intended = await withoutThose(git, tree, empty);
  const target = store.blob("-");
  const leading = intended.map((entry) =>
    entry.startsWith("120000 ") ? entry.replace(nothing, target) : entry,
  );
  const intendedTree = await treeOf(repository, leading);
  const names = intended.map(nameOf);
  return { tree, unmerged, intended: names, intendedTree, skipped, assumed, links };
}

export function nameOf(entry: string): string {
  return entry.slice(entry.indexOf("\t") + 1);
}

/** What is announced looks like an empty file in the index, and is no part of its tree. */
async function withoutThose(git: Git, tree: string, empty: string[]): Promise<string[]> {
  if (empty.length === 0) return [];
  const there = new Set(await git.list(["ls-tree", "-r", "--name-only", "-z", tree]));
  return empty.filter((entry) => !there.has(nameOf(entry)));
}

async function treeOf({ raw, ours }: Repository, entries: string[]): Promise<string> {
  return await withCopy(join(ours, "no-index"), ours, async (fresh) => {
    const git = raw.with({ GIT_INDEX_FILE: fresh });
    if (entries.length > 0) {
      await git.run(["update-index", "-z", "--index-info"], { input: listed(entries) });
    }
    return await git.text(["write-tree"]);
  });
}

async function has({ plain }: Repository, id: string): Promise<boolean> {
  return (await plain.run(["cat-file", "-e", id], { answers: [1, 128] })).code === 0;
}

function remembered(memory: string): Remembered | undefined {
  try {
    return JSON.parse(readFileSync(memory, "utf8")) as Remembered;
  } catch {
    // None yet, or a broken one: it is made anew.
    return undefined;
  }
}

const checksumBytes = 32;

function identity(index: string): string {
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
