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
import { listed } from "./git.ts";
import { withCopy } from "./index-copy.ts";
import type { Repository } from "./repository.ts";

export type Staged = {
  /** Of all that is not in conflict. */
  tree: string;
  /** As `update-index --index-info` takes it: `mode id stage`, a tab, the name. */
  unmerged: string[];
  /** Announced with `add -N`. */
  intended: string[];
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

async function look({ plain }: Repository, copy: string): Promise<Staged> {
  const git = plain.with({ GIT_INDEX_FILE: copy });
  const staged: Omit<Staged, "tree"> = {
    ...{ unmerged: [], intended: [], skipped: [], assumed: [], links: [] },
  };
  for (const entry of await git.list(["ls-files", "-v", "--stage", "-z"])) {
    const [, tag = "", what = "", name = ""] = /^(.) ([^\t]*)\t(.*)$/s.exec(entry) ?? [];
    if (/^160000 .* 0$/.test(what)) staged.links.push(name);
    if (!what.endsWith(" 0")) staged.unmerged.push(`${what}\t${name}`);
    if (tag.toUpperCase() === "S") staged.skipped.push(name);
    if (tag !== tag.toUpperCase()) staged.assumed.push(name);
  }
  const intended = ["--ita-invisible-in-index", "--no-renames", "--diff-filter=A"];
  const ignoring = "--ignore-submodules=all";
  staged.intended = await git.list(["diff-files", "--name-only", "-z", ignoring, ...intended]);
  if (staged.unmerged.length > 0) {
    const names = new Set(staged.unmerged.map((entry) => entry.slice(entry.indexOf("\t") + 1)));
    await git.run(["update-index", "--force-remove", "-z", "--stdin"], { input: listed(names) });
  }
  return { ...staged, tree: await git.text(["write-tree", "--missing-ok"]) };
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
