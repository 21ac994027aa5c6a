/**
 * Owns the tree of the files as they lie on the disk: all that git knows or would show as untracked, nothing ignored.
 * Keeps an index of its own beside the repository, so that files which have not changed are not read again.
 */
import { lstatSync, renameSync } from "node:fs";
import { join } from "node:path";
import { listed } from "./git.ts";
import { look as lookAt, pathOf } from "./here.ts";
import { withCopy } from "./index-copy.ts";
import type { Repository } from "./repository.ts";
import { nameOf } from "./staged.ts";

export type Worktree = {
  tree: string;
  /** Repositories below this one: submodules, and others that stand in it. Without a slash at the end. */
  nested: string[];
  /** Ignored by now: they are no longer described, and stay where they are. */
  released: string[];
  /** Known to git, but not there. */
  absent: string[];
};

export async function readWorktree(repository: Repository): Promise<Worktree> {
  const own = join(repository.ours, "index");
  return await withCopy(own, repository.ours, async (copy) => {
    const raw = repository.raw.with({ GIT_INDEX_FILE: copy });
    const forget = (names: string[]) =>
      raw.run(["update-index", "--force-remove", "-z", "--stdin"], { input: listed(names) });
    let seen = await look(repository, copy);
    const { taken } = seen;
    if (taken.length > 0) {
      await forget(taken);
      seen = await look(repository, copy);
    }
    if (seen.gone.length > 0) await forget(seen.gone);
    if (seen.changed.length > 0) {
      const input = listed(seen.changed);
      await raw.run(["update-index", "--add", "--remove", "--replace", "-z", "--stdin"], { input });
    }
    const tree = await raw.text(["write-tree"]);
    if (taken.length + seen.gone.length + seen.changed.length > 0) renameSync(copy, own);
    const { nested, released, absent } = seen;
    return { tree, nested, released, absent };
  });
}

type Seen = Omit<Worktree, "tree"> & {
  changed: string[];
  gone: string[];
  /** Of our index, where a repository stands by now. */
  taken: string[];
};

const ignored = ["ls-files", "-z", "--cached", "--ignored", "--exclude-standard"];
const deleted = ["ls-files", "-z", "--deleted"];
const others = ["ls-files", "-z", "--others", "--exclude-standard"];

async function look({ top, plain, raw }: Repository, index: string): Promise<Seen> {
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
  const gone: string[] = [];
  for (let at = 0; at + 1 < differing.length; at += 2) {
    const name = differing[at + 1] ?? "";
    (differing[at] === "D" ? gone : changed).push(name);
  }
  const [isTracked, isDescribed] = [new Set(tracked), new Set(described)];
  const released = described.filter((name) => !isTracked.has(name));
  const isBelow = (name: string) => nested.some((one) => name.startsWith(`${one}/`));
  const forced = tracked.filter(
    (name) => !isDescribed.has(name) && !isBelow(name) && liesThere(top, name),
  );
  const without = new Set(released);
  return {
    changed: [...changed.filter((name) => !without.has(name)), ...forced],
    gone: [...gone, ...released],
    nested,
    released,
    absent,
    taken: takenOf(top, entries, new Set([...gone, ...changed])),
  };
}

/** Git asks for no repository where an index knows something below, so those names have to go before it is asked. */
function takenOf(top: string, entries: string[], differing: Set<string>): string[] {
  const isRepository = (name: string) => lookAt(pathOf(top, `${name}/.git`)) !== undefined;
  const looked = new Map<string, boolean>();
  const isWithin = (folder: string): boolean => {
    if (folder === "") return false;
    const known = looked.get(folder);
    if (known !== undefined) return known;
    const found = isRepository(folder) || isWithin(folderOf(folder));
    looked.set(folder, found);
    return found;
  };
  return entries
    .filter((entry) => {
      const name = nameOf(entry);
      // A repository is none of our files: that one was put here in the moment of becoming one.
      if (entry.startsWith("160000 ")) return true;
      return isWithin(folderOf(name)) || (differing.has(name) && isRepository(name));
    })
    .map(nameOf);
}

function folderOf(name: string): string {
  return name.slice(0, Math.max(0, name.lastIndexOf("/")));
}

/** A file or a link, and not behind a link: what lies there belongs to another name. */
function liesThere(top: string, name: string): boolean {
  const parts = name.split("/");
  for (let count = 1; count <= parts.length; count += 1) {
    const path = Buffer.from(`${parts.slice(0, count).join("/")}`, "latin1");
    const found = lstatSync(Buffer.concat([Buffer.from(`${top}/`), path]), {
      throwIfNoEntry: false,
    });
    if (found === undefined) return false;
    if (count < parts.length ? !found.isDirectory() : !(found.isFile() || found.isSymbolicLink())) {
      return false;
    }
  }
  return true;
}
