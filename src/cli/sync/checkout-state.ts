/** Describes a checkout as one commit: index, files, HEAD, and the settings of git. The same state has the same id. */
import { lstatSync, readFileSync, rmSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { Failure } from "../failure.ts";
import { resolveFilters } from "./filters.ts";
import { displayName, joinNul } from "./git.ts";
import { entryName, type IndexState, readIndex } from "./index-state.ts";
import { ObjectStore, type TreeEntry } from "./object-store.ts";
import type { Repository } from "./repository.ts";
import { readWorktree } from "./worktree.ts";

export type CheckoutState = {
  /** The commit that contains all of it; its parent is HEAD's commit. */
  id: string;
  /** The tree of the files as they are on disk. */
  files: string;
  head: string | undefined;
  /** Nested repositories: each has a state of its own. */
  nested: string[];
  /** Files that have become ignored since the last state. */
  released: string[];
};

/** Reads the state of a checkout. If a cached object is missing, reads it again without caches. */
export async function readCheckoutState(repository: Repository): Promise<CheckoutState> {
  try {
    return await buildCheckoutState(repository);
  } catch (error) {
    if (!(error instanceof Failure) || error.code !== "git_failed") throw error;
    return await rereadCheckoutState(repository);
  }
}

/** Without our caches: they may name objects that the owner's git has removed. */
export async function rereadCheckoutState(repository: Repository): Promise<CheckoutState> {
  for (const name of ["index", "staged.json"])
    rmSync(join(repository.berthDir, name), { force: true });
  return await buildCheckoutState(repository);
}

async function buildCheckoutState(repository: Repository): Promise<CheckoutState> {
  const [head, branch, staged, worktree, settings] = await Promise.all([
    readHead(repository),
    readBranch(repository),
    readIndex(repository),
    readWorktree(repository),
    readSettings(repository),
  ]);
  const { tree: files, assumed } = await resolveFilters(
    repository,
    head?.tree,
    staged,
    worktree.tree,
  );
  const store = new ObjectStore(join(repository.berthDir, "objects"), repository.format);
  const text: Record<string, string | Buffer> = {
    ...settings,
    absent: joinNul(worktree.absent),
    assumed: joinNul([...staged.assumed, ...assumed]),
    folders: joinNul(findEmptySubmodules(repository.top, staged.links, worktree.nested)),
    head: branch ?? "",
    intended: joinNul(staged.intended),
    nested: joinNul(worktree.nested),
    skipped: joinNul(staged.skipped),
    unmerged: joinNul(staged.unmerged.flatMap(withRemovalFirst)),
  };
  const file = (name: string, content: string | Buffer): TreeEntry => {
    return { name, mode: "100644", id: store.blob(content) };
  };
  const folder = (name: string, id: string): TreeEntry => ({ name, mode: "40000", id });
  const tree = store.tree([
    folder("i", staged.tree),
    folder("m", store.tree(Object.entries(text).map(([name, content]) => file(name, content)))),
    folder("n", staged.intendedTree),
    folder("s", store.tree(toConflictEntries(staged))),
    folder("w", files),
  ]);
  const { nested, released } = worktree;
  return { id: store.commit(tree, head?.commit), files, head: head?.commit, nested, released };
}

type Head = { commit: string; tree: string };

/** Undefined before the first commit. */
async function readHead({ plain }: Repository): Promise<Head | undefined> {
  const args = ["rev-parse", "HEAD^{commit}", "HEAD^{tree}"];
  const { code, stdout } = await plain.run(args, { okCodes: [1, 128] });
  const [commit = "", tree = ""] = stdout.toString().trim().split("\n");
  return code === 0 ? { commit, tree } : undefined;
}

/** The full name of HEAD's branch. Each call of git costs milliseconds of every run, so git's own file is read first. */
async function readBranch({ plain, gitDir }: Repository): Promise<string | undefined> {
  const head = readIfExists(join(gitDir, "HEAD"));
  if (/^[0-9a-f]{40,64}\n?$/.test(head)) return undefined;
  const [, name] = /^ref: (refs\/heads\/(?!\.invalid$).+)\n?$/.exec(head) ?? [];
  if (name !== undefined) return name;
  const { code, stdout } = await plain.run(["symbolic-ref", "--quiet", "HEAD"], { okCodes: [1] });
  return code === 0 ? stdout.toString("latin1").replace(/\n$/, "") : undefined;
}

/** The sides of a conflict are not in the index's tree: this tree keeps them with the state. */
function toConflictEntries({ unmerged }: IndexState): TreeEntry[] {
  const ids = unmerged
    .filter((entry) => !entry.startsWith("160000 "))
    .map((entry) => entry.split(" ")[1] ?? "");
  return [...new Set(ids)].sort().map((id) => ({ name: id, mode: "100644", id }));
}

function withRemovalFirst(entry: string, index: number, all: string[]): string[] {
  const before = all[index - 1];
  if (before !== undefined && entryName(before) === entryName(entry)) return [entry];
  const id = entry.split(" ")[1] ?? "";
  return [`0 ${"0".repeat(id.length)}\t${entryName(entry)}`, entry];
}

/** A submodule that is not checked out is an empty folder; without the folder it would count as deleted. */
function findEmptySubmodules(top: string, links: string[], nested: string[]): string[] {
  return links.filter((name) => {
    if (nested.includes(name)) return false;
    return (
      lstatSync(join(top, displayName(name)), { throwIfNoEntry: false })?.isDirectory() ?? false
    );
  });
}

type GitSettings = {
  config: string;
  exclude: string;
  /** The repository's own attributes: they override those in the tree. */
  attributes: string;
  /** The user's attributes: those in the tree override them. */
  usual: string;
  shallow: string;
};

/** Settings that change what `git status` reports for the same files, and the author of commits. */
const statusSettings =
  "^(core\\.(autocrlf|eol|safecrlf|filemode|symlinks|ignorecase|precomposeunicode)" +
  "|user\\.(name|email)|status\\.(renames|renamelimit|showuntrackedfiles)|diff\\.(renames|renamelimit))$";

/** What decides outside of the tree how git sees a checkout. The tree's own lists are files like others. */
async function readSettings(repository: Repository): Promise<GitSettings> {
  const { plain } = repository;
  const args = ["config", "--null", "--get-regexp"];
  const names = `${statusSettings}|^core\\.(excludesfile|attributesfile)$`;
  const pairs = readPairs(await plain.list([...args, names], { okCodes: [1] }));
  const [excludes, attributes] = await Promise.all([
    resolveSettingFile(repository, pairs, "core.excludesfile", "ignore"),
    resolveSettingFile(repository, pairs, "core.attributesfile", "attributes"),
  ]);
  return {
    config: formatConfig(pairs),
    exclude: `${readIfExists(excludes)}\n${readIfExists(repository.exclude)}`,
    attributes: readIfExists(repository.attributes),
    usual: readIfExists(attributes),
    shallow: readIfExists(repository.shallow),
  };
}

/** The last value of a name counts, in git's own order of files. */
function readPairs(pairs: string[]): Map<string, string> {
  return new Map(pairs.map((pair) => splitPair(pair, pair.indexOf("\n"))));
}

function formatConfig(pairs: Map<string, string>): string {
  return [...pairs]
    .filter(([name]) => new RegExp(statusSettings).test(name))
    .map(([name, value]) => {
      const dot = name.indexOf(".");
      const text = value.replace(/[\\"]/g, "\\$&");
      return `[${name.slice(0, dot)}]\n\t${name.slice(dot + 1)} = "${text}"\n`;
    })
    .join("");
}

/** A name without a value means true. */
function splitPair(pair: string, separator: number): [string, string] {
  return separator < 0 ? [pair, "true"] : [pair.slice(0, separator), pair.slice(separator + 1)];
}

/** The file that a setting names, or git's default. */
async function resolveSettingFile(
  { plain }: Repository,
  pairs: Map<string, string>,
  setting: string,
  file: string,
): Promise<string> {
  const value = pairs.get(setting);
  if (value === undefined) {
    return join(process.env.XDG_CONFIG_HOME || join(homedir(), ".config"), "git", file);
  }
  // Only git knows what it makes of a relative path, a home folder or its own prefix.
  if (value.startsWith("/")) return Buffer.from(value, "latin1").toString();
  const args = ["config", "--null", "--path", setting];
  return (await plain.run(args)).stdout.toString().replace(/\0$/, "");
}

function readIfExists(path: string): string {
  try {
    return readFileSync(path, "latin1");
  } catch {
    // Most users have none.
    return "";
  }
}
