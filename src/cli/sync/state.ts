/**
 * Owns the description of a checkout as one commit: what is staged, what lies on the disk, where HEAD is, and how git
 * is to look at it. The same state has the same id, so whoever has the id has the state. Does not own sending it.
 */
import { lstatSync, rmSync } from "node:fs";
import { join } from "node:path";
import { Failure } from "../failure.ts";
import { withoutFilters } from "./filtered.ts";
import { listed, shown } from "./git.ts";
import { ObjectStore, type TreeEntry } from "./object-store.ts";
import type { Repository } from "./repository.ts";
import { readSettings } from "./settings.ts";
import { nameOf, readStaged, type Staged } from "./staged.ts";
import { readWorktree } from "./worktree.ts";

export type State = {
  /** The commit that says all of it; its parent is HEAD's. */
  id: string;
  /** The files as they lie on the disk. */
  files: string;
  head: string | undefined;
  branch: string | undefined;
  /** Repositories below: each has a state of its own. */
  nested: string[];
  released: string[];
};

export async function describe(repository: Repository): Promise<State> {
  try {
    return await look(repository);
  } catch (error) {
    if (!(error instanceof Failure) || error.code !== "git_failed") throw error;
    return await describeAnew(repository);
  }
}

/** Without what we remember: it may name objects that the owner's git had and has cleared away. */
export async function describeAnew(repository: Repository): Promise<State> {
  for (const name of ["index", "staged.json"]) rmSync(join(repository.ours, name), { force: true });
  return await look(repository);
}

async function look(repository: Repository): Promise<State> {
  const [head, branch, staged, worktree, settings] = await Promise.all([
    headOf(repository),
    branchOf(repository),
    readStaged(repository),
    readWorktree(repository),
    readSettings(repository),
  ]);
  const { tree: files, assumed } = await withoutFilters(repository, head, staged, worktree.tree);
  const store = new ObjectStore(join(repository.ours, "objects"), repository.format);
  const text: Record<string, string | Buffer> = {
    ...settings,
    absent: listed(worktree.absent),
    assumed: listed([...staged.assumed, ...assumed]),
    folders: listed(emptyLinks(repository.top, staged.links, worktree.nested)),
    head: branch ?? "",
    intended: listed(staged.intended),
    nested: listed(worktree.nested),
    skipped: listed(staged.skipped),
    unmerged: listed(staged.unmerged.flatMap(replacing)),
  };
  const file = (name: string, content: string | Buffer): TreeEntry => {
    return { name, mode: "100644", id: store.blob(content) };
  };
  const folder = (name: string, id: string): TreeEntry => ({ name, mode: "40000", id });
  const tree = store.tree([
    folder("i", staged.tree),
    folder("m", store.tree(Object.entries(text).map(([name, content]) => file(name, content)))),
    folder("n", staged.intendedTree),
    folder("s", store.tree(contested(staged))),
    folder("w", files),
  ]);
  const { nested, released } = worktree;
  return { id: store.commit(tree, head), files, head, branch, nested, released };
}

async function headOf({ plain }: Repository): Promise<string | undefined> {
  const asked = ["rev-parse", "--quiet", "--verify", "HEAD^{commit}"];
  const { code, stdout } = await plain.run(asked, { answers: [1, 128] });
  return code === 0 ? stdout.toString().trim() : undefined;
}

async function branchOf({ plain }: Repository): Promise<string | undefined> {
  const { code, stdout } = await plain.run(["symbolic-ref", "--quiet", "HEAD"], { answers: [1] });
  return code === 0 ? stdout.toString("latin1").replace(/\n$/, "") : undefined;
}

/** The sides of a conflict are no part of the index's tree: kept here, they travel along. */
function contested({ unmerged }: Staged): TreeEntry[] {
  const ids = unmerged
    .filter((entry) => !entry.startsWith("160000 "))
    .map((entry) => entry.split(" ")[1] ?? "");
  return [...new Set(ids)].sort().map((id) => ({ name: id, mode: "100644", id }));
}

function replacing(entry: string, at: number, all: string[]): string[] {
  const before = all[at - 1];
  if (before !== undefined && nameOf(before) === nameOf(entry)) return [entry];
  const id = entry.split(" ")[1] ?? "";
  return [`0 ${"0".repeat(id.length)}\t${nameOf(entry)}`, entry];
}

/** A submodule that is not filled is an empty folder; without one it would be told as deleted. */
function emptyLinks(top: string, links: string[], nested: string[]): string[] {
  return links.filter((name) => {
    if (nested.includes(name)) return false;
    return lstatSync(join(top, shown(name)), { throwIfNoEntry: false })?.isDirectory() ?? false;
  });
}
