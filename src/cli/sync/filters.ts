/** Handles files that a filter program transforms, above all Git LFS: files are sent as git stores them. */
import { Failure } from "../failure.ts";
import { displayName, joinNul } from "./git.ts";
import type { IndexState } from "./index-state.ts";
import type { Repository } from "./repository.ts";
import { withIndexCopy } from "./temporary-files.ts";

type FilteredTree = { tree: string; assumed: string[] };

const namesShownMax = 5;

export async function resolveFilters(
  repository: Repository,
  headTree: string | undefined,
  staged: IndexState,
  tree: string,
): Promise<FilteredTree> {
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
  const stagedNames = await differing(headTree ?? staged.tree, staged.tree);
  const unstagedNames = await differing(staged.tree, tree);
  const filters = await readFilters(repository, new Set([...stagedNames, ...unstagedNames]));
  if (filters.size === 0) return { tree, assumed: [] };

  const changed = new Set(stagedNames);
  const known = await withIndexCopy(repository.index, repository.berthDir, async (copy) => {
    const git = plain.with({ GIT_INDEX_FILE: copy });
    // Runs the filters, because only they tell whether a file differs from what git has.
    await git.run(["update-index", "-q", "--refresh"], { okCodes: [1] });
    for (const name of await git.list(["diff-files", "--name-only", "--no-renames", "-z"])) {
      changed.add(name);
    }
    return await git.list(["ls-files", "--stage", "-z"]);
  });
  const entries = new Map(known.map((entry) => [entry.slice(entry.indexOf("\t") + 1), entry]));
  const isLarge = (name: string) => filters.get(name) === "lfs";
  const changedLarge = [...filters.keys()].filter(
    (name) => isLarge(name) && (changed.has(name) || !entries.has(name)),
  );
  if (changedLarge.length > 0) throw largeChanged(changedLarge);
  const unchanged = unstagedNames.filter((name) => filters.has(name) && !changed.has(name));
  const large = unchanged.filter(isLarge);
  const assumed = unchanged.filter((name) => !isLarge(name) && entries.has(name));
  if (large.length === 0) return { tree, assumed };
  const input = joinNul(large.map((name) => entries.get(name) ?? ""));
  const replaced = await withIndexCopy(
    `${repository.berthDir}/index`,
    repository.berthDir,
    async (copy) => {
      const git = raw.with({ GIT_INDEX_FILE: copy });
      await git.run(["update-index", "-z", "--index-info"], { input });
      return await git.text(["write-tree"]);
    },
  );
  return { tree: replaced, assumed };
}

async function readFilters(
  { plain }: Repository,
  names: Set<string>,
): Promise<Map<string, string>> {
  const filters = new Map<string, string>();
  if (names.size === 0) return filters;
  const attributes = await plain.list(["check-attr", "-z", "--stdin", "filter"], {
    input: joinNul(names),
  });
  for (let i = 0; i + 2 < attributes.length; i += 3) {
    const [name = "", , value = ""] = attributes.slice(i, i + 3);
    if (!/^(unspecified|unset|set)$/.test(value)) filters.set(name, value);
  }
  return filters;
}

function largeChanged(names: string[]): Failure {
  const some = names.slice(0, namesShownMax).map(displayName).join(", ");
  const more = names.length > namesShownMax ? ` and ${names.length - namesShownMax} more` : "";
  return new Failure(`Git LFS files have changed and cannot be sent: ${some}${more}.`, {
    code: "lfs_changed",
    hint: "Undo the changes, or copy the files with `berth cp`.",
    facts: { paths: names.map(displayName) },
  });
}
