/**
 * Owns where a checkout and its repository are, and the folder beside it in which its states are described.
 * Does not own their content.
 */
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Failure } from "../failure.ts";
import { Git } from "./git.ts";
import { removeLeftOver } from "./passing-files.ts";

export type Repository = {
  top: string;
  /** Of this worktree: of a linked one its own. */
  gitDir: string;
  index: string;
  objects: string;
  exclude: string;
  attributes: string;
  shallow: string;
  format: "sha1" | "sha256";
  /** Where the caller stands below `top`: "" is `top` itself. */
  prefix: string;
  /** Ours, in the repository's own folder: git never shows it. */
  ours: string;
  /** The repository as its owner has it; what it writes goes to `ours`. */
  plain: Git;
  /** Looks at the same files with an index of ours, in which everything is as it lies on the disk. */
  raw: Git;
};

export async function openRepository(cwd: string, signal?: AbortSignal): Promise<Repository> {
  if (!existsSync(cwd)) throw new Failure(`There is no folder ${cwd}.`, { code: "no_checkout" });
  const places = await placesOf(new Git({ cwd, signal }));
  const [top, gitDir, index, objects, exclude, attributes, shallow, format, prefix = ""] = places;
  if (
    top === undefined ||
    gitDir === undefined ||
    index === undefined ||
    objects === undefined ||
    exclude === undefined ||
    attributes === undefined ||
    shallow === undefined ||
    (format !== "sha1" && format !== "sha256")
  ) {
    throw new Failure(`git does not say where the checkout of ${cwd} is.`, { code: "git_failed" });
  }
  const ours = join(gitDir, "berth");
  await make(ours, format, objects, signal);
  removeLeftOver(ours);
  const store = {
    GIT_OBJECT_DIRECTORY: join(ours, "objects"),
    GIT_ALTERNATE_OBJECT_DIRECTORIES: quoted(objects),
  };
  const at = (env: Record<string, string>) =>
    new Git({ cwd: top, signal, env: { GIT_WORK_TREE: top, ...store, ...env } });
  return {
    ...{ top, gitDir, index, objects, exclude, attributes, shallow, format, ours },
    prefix: prefix.replace(/\/$/, ""),
    plain: at({ GIT_DIR: gitDir }),
    raw: at({
      GIT_DIR: ours,
      GIT_SHALLOW_FILE: shallow,
      GIT_CONFIG_GLOBAL: "/dev/null",
      GIT_CONFIG_SYSTEM: "/dev/null",
    }),
  };
}

async function placesOf(git: Git): Promise<string[]> {
  const paths = ["index", "objects", "info/exclude", "info/attributes", "shallow"];
  const asked = ["rev-parse", "--path-format=absolute", "--show-toplevel", "--absolute-git-dir"];
  const asks = paths.flatMap((path) => ["--git-path", path]);
  const told = await git
    .run([...asked, ...asks, "--show-object-format", "--show-prefix"])
    .catch((error) => {
      if (!(error instanceof Failure) || /not installed/.test(error.message)) throw error;
      throw new Failure(error.message.replace(/^git rev-parse: (fatal: )?/, "No git checkout: "), {
        code: "no_checkout",
        hint: "Change into a git checkout: what is in it is what the sandbox gets.",
      });
    });
  return told.stdout.toString().split("\n");
}

/** A repository of its own, because the attributes of the real one must not apply, and nothing of it may change. */
async function make(ours: string, format: string, objects: string, signal?: AbortSignal) {
  if (existsSync(join(ours, "HEAD"))) return;
  mkdirSync(ours, { recursive: true });
  const git = new Git({ cwd: ours, signal });
  const form = [`--object-format=${format}`, "--template="];
  await git.run(["init", "-q", "--bare", ...form, "."]);
  mkdirSync(join(ours, "info"), { recursive: true });
  writeFileSync(join(ours, "info", "attributes"), rawAttributes);
  writeFileSync(join(ours, "objects", "info", "alternates"), `${objects}\n`);
}

/** Bytes as they lie on the disk, whatever attributes say: no line ends, filters, keywords, encodings. */
export const rawAttributes = "* -text -ident !filter !working-tree-encoding\n";

/** Git takes a list apart at colons, unless the path stands in quotes. */
function quoted(path: string): string {
  return `"${path.replace(/[\\"]/g, "\\$&")}"`;
}
