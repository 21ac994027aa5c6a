/**
 * Owns files that a program of the owner's turns into something else on the way into git, above all large ones (LFS).
 * What git holds of them travels; a change of a large file cannot, and is refused before anything is sent.
 */
import { Failure } from "../failure.ts";
import { listed, shown } from "./git.ts";
import { withCopy } from "./index-copy.ts";
import type { Repository } from "./repository.ts";
import type { Staged } from "./staged.ts";

export type Filtered = { tree: string; assumed: string[] };

const namesShown = 5;

export async function withoutFilters(
  repository: Repository,
  head: string | undefined,
  staged: Staged,
  tree: string,
): Promise<Filtered> {
  const { raw, plain } = repository;
  const differing = (from: string, to: string) =>
    from === to
      ? Promise.resolve<string[]>([])
      : raw.list([
          "diff-tree",
          "-r",
          "--name-only",
          "--no-renames",
          "--diff-filter=d",
          "-z",
          from,
          to,
        ]);
  const newly = await differing(head === undefined ? staged.tree : `${head}^{tree}`, staged.tree);
  const lying = await differing(staged.tree, tree);
  const filters = await filtersOf(repository, new Set([...newly, ...lying]));
  if (filters.size === 0) return { tree, assumed: [] };

  const changed = new Set(newly);
  const known = await withCopy(repository.index, repository.ours, async (copy) => {
    const git = plain.with({ GIT_INDEX_FILE: copy });
    // Whoever filters is asked: only so is it known whether the file is another one than git has.
    await git.run(["update-index", "-q", "--refresh"], { answers: [1] });
    for (const name of await git.list(["diff-files", "--name-only", "--no-renames", "-z"])) {
      changed.add(name);
    }
    return await git.list(["ls-files", "--stage", "-z"]);
  });
  const entries = new Map(known.map((entry) => [entry.slice(entry.indexOf("\t") + 1), entry]));
  const isLarge = (name: string) => filters.get(name) === "lfs";
  const unsendable = [...filters.keys()].filter(
    (name) => isLarge(name) && (changed.has(name) || !entries.has(name)),
  );
  if (unsendable.length > 0) throw largeChanged(unsendable);
  const unchanged = lying.filter((name) => filters.has(name) && !changed.has(name));
  const large = unchanged.filter(isLarge);
  const assumed = unchanged.filter((name) => !isLarge(name) && entries.has(name));
  if (large.length === 0) return { tree, assumed };
  const input = listed(large.map((name) => entries.get(name) ?? ""));
  const replaced = await withCopy(`${repository.ours}/index`, repository.ours, async (copy) => {
    const git = raw.with({ GIT_INDEX_FILE: copy });
    await git.run(["update-index", "-z", "--index-info"], { input });
    return await git.text(["write-tree"]);
  });
  return { tree: replaced, assumed };
}

async function filtersOf({ plain }: Repository, names: Set<string>): Promise<Map<string, string>> {
  const filters = new Map<string, string>();
  if (names.size === 0) return filters;
  const told = await plain.list(["check-attr", "-z", "--stdin", "filter"], {
    input: listed(names),
  });
  for (let at = 0; at + 2 < told.length; at += 3) {
    const [name = "", , value = ""] = told.slice(at, at + 3);
    if (!/^(unspecified|unset|set)$/.test(value)) filters.set(name, value);
  }
  return filters;
}

function largeChanged(names: string[]): Failure {
  const some = names.slice(0, namesShown).map(shown).join(", ");
  const more = names.length > namesShown ? ` and ${names.length - namesShown} more` : "";
  return new Failure(`Files of Git LFS have changed and cannot be sent: ${some}${more}.`, {
    code: "lfs_changed",
    hint: "Undo the change, or copy the files with `berth cp`.",
    facts: { paths: names.map(shown) },
  });
}
