/** Where a checkout and its repository are, and `.git/berth`, a repository of ours that describes its states. */
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Failure } from "../failure.ts";
import { Git } from "./git.ts";
import type { ObjectFormat } from "./object-store.ts";
import { removeStaleFiles } from "./temporary-files.ts";

export type Repository = {
  top: string;
  gitDir: string;
  index: string;
  /** The owner's objects. */
  objects: string;
  exclude: string;
  attributes: string;
  shallow: string;
  format: ObjectFormat;
  /** The caller's folder below `top`; empty at `top` itself. */
  prefix: string;
  /** Our folder within the git folder: git never shows it. */
  berthDir: string;
  /** git with the owner's settings; new objects go to `berthDir`. */
  plain: Git;
  /** git with our own index, in which every file is as it is on disk. */
  raw: Git;
};

export async function openRepository(cwd: string, signal?: AbortSignal): Promise<Repository> {
  if (!existsSync(cwd)) throw new Failure(`${cwd} does not exist.`, { code: "no_checkout" });
  const paths = await readPaths(new Git({ cwd, signal }));
  const [top = "", gitDir = "", index = "", objects = ""] = paths;
  const [exclude = "", attributes = "", shallow = "", format, prefix = ""] = paths.slice(4);
  // The format comes after all paths.
  if (format !== "sha1" && format !== "sha256") {
    throw new Failure(`git does not report where the checkout of ${cwd} is.`, {
      code: "git_failed",
    });
  }
  const berthDir = join(gitDir, "berth");
  await initStore(berthDir, format, objects, signal);
  removeStaleFiles(berthDir);
  const store = {
    GIT_OBJECT_DIRECTORY: join(berthDir, "objects"),
    GIT_ALTERNATE_OBJECT_DIRECTORIES: quote(objects),
  };
  const gitWith = (env: Record<string, string>) =>
    new Git({ cwd: top, signal, env: { GIT_WORK_TREE: top, ...store, ...env } });
  return {
    top,
    gitDir,
    index,
    objects,
    exclude,
    attributes,
    shallow,
    format,
    berthDir,
    prefix: prefix.replace(/\/$/, ""),
    plain: gitWith({ GIT_DIR: gitDir }),
    raw: gitWith({
      GIT_DIR: berthDir,
      GIT_SHALLOW_FILE: shallow,
      GIT_CONFIG_GLOBAL: "/dev/null",
      GIT_CONFIG_SYSTEM: "/dev/null",
    }),
  };
}

async function readPaths(git: Git): Promise<string[]> {
  const paths = ["index", "objects", "info/exclude", "info/attributes", "shallow"];
  const args = ["rev-parse", "--path-format=absolute", "--show-toplevel", "--absolute-git-dir"];
  const asks = paths.flatMap((path) => ["--git-path", path]);
  const output = await git
    .run([...args, ...asks, "--show-object-format", "--show-prefix"])
    .catch((error) => {
      if (!(error instanceof Failure) || /not installed/.test(error.message)) throw error;
      throw new Failure(error.message.replace(/^git rev-parse: (fatal: )?/, "No git checkout: "), {
        code: "no_checkout",
        hint: "Change into a git checkout: the sandbox gets its files.",
      });
    });
  return output.stdout.toString().split("\n");
}

/** A separate repository, because the attributes of the real one must not apply, and nothing in it may change. */
async function initStore(berthDir: string, format: string, objects: string, signal?: AbortSignal) {
  if (existsSync(join(berthDir, "HEAD"))) return;
  mkdirSync(berthDir, { recursive: true });
  const git = new Git({ cwd: berthDir, signal });
  const form = [`--object-format=${format}`, "--template="];
  await git.run(["init", "-q", "--bare", ...form, "."]);
  mkdirSync(join(berthDir, "info"), { recursive: true });
  writeFileSync(join(berthDir, "info", "attributes"), rawAttributes);
  writeFileSync(join(berthDir, "objects", "info", "alternates"), `${objects}\n`);
}

/** Bytes as they are on disk, whatever attributes say: no line ends, filters, keywords, encodings. */
export const rawAttributes = "* -text -ident !filter !working-tree-encoding\n";

/** git splits a list at colons unless the path is quoted. */
function quote(path: string): string {
  return `"${path.replace(/[\\"]/g, "\\$&")}"`;
}
