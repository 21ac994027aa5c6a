/** Finds the checkout of the working directory: its folder, repository and branch. */
import { readFileSync, realpathSync } from "node:fs";
import { join } from "node:path";
import { Failure } from "../failure.ts";
import { noGit, runGit } from "./git.ts";
import { normaliseRemote, readOrCreateId } from "./repo-id.ts";

export type Checkout = {
  root: string;
  /** The working directory, and its path relative to the root: empty at the root. */
  folder: string;
  below: string;
  gitDir: string;
  /** Shared by the worktrees of one repository. */
  commonDir: string;
  repo: string;
  /** Undefined when HEAD is detached. */
  branch: string | undefined;
  /** Where HEAD is detached; undefined before the first commit too. */
  commit: string | undefined;
  /** The branch as scopes name it. */
  branchKey: string;
};

export const detachedPrefix = "detached@";

/** `takesId`: the command also takes `--id`, for the hint. */
export function readCheckout(cwd: string, takesId: boolean): Checkout {
  const checkout = findCheckout(cwd);
  if (checkout !== undefined) return checkout;
  if (runGit(cwd, ["--version"]).code === noGit) {
    throw new Failure("git is not installed.", {
      hint: takesId ? "Install git, or give a sandbox with `--id`." : "Install git.",
      code: "no_git",
    });
  }
  throw new Failure(`${cwd} is not inside a git checkout.`, {
    hint: takesId
      ? "Change into a checkout, run `git init`, or give a sandbox with `--id`."
      : "Change into a checkout, or run `git init`.",
    code: "no_checkout",
  });
}

export function findCheckout(cwd: string): Checkout | undefined {
  const paths = runGit(cwd, [
    "rev-parse",
    "--path-format=absolute",
    "--is-bare-repository",
    "--git-dir",
    "--git-common-dir",
    "--show-prefix",
    "--show-toplevel",
  ]);
  if (!paths.ok) return failIfDistrusted(paths.stderr);
  const [bare, gitDir = "", commonDir = "", below = "", root, ...rest] = paths.stdout.split("\n");
  // git prints each path on a line of its own.
  if (rest.length > 1) {
    throw new Failure(`${JSON.stringify(cwd)} has a line break in its name.`, {
      hint: "Rename the folder: git cannot print such paths.",
      code: "no_checkout",
    });
  }
  if (bare === "true" || root === undefined || root === "") return undefined;
  const branch = readBranch(cwd, gitDir);
  // On a branch nobody asks for the commit: each call of git costs milliseconds of every command.
  const commit =
    branch === undefined
      ? outputLine(runGit(cwd, ["rev-parse", "--quiet", "--verify", "HEAD^{commit}"]))
      : undefined;
  const top = realpathSync(root);
  return {
    root: top,
    folder: join(top, below),
    below: below.replace(/\/$/, ""),
    gitDir,
    commonDir,
    repo: findRemoteId(cwd) ?? readOrCreateId(commonDir),
    branch,
    commit,
    branchKey: branch ?? (commit === undefined ? "detached" : `${detachedPrefix}${commit}`),
  };
}

/** Not being in a checkout is a normal result; git refusing to look is a failure. */
function failIfDistrusted(stderr: string): undefined {
  if (/dubious ownership/.test(stderr)) {
    throw new Failure("git does not trust this checkout, because it belongs to another user.", {
      hint: "To trust it, run `git config --global --add safe.directory <folder>`.",
      code: "no_checkout",
    });
  }
  return undefined;
}

/** Git's own file says it in the usual case; where references are stored otherwise, git is asked. */
function readBranch(cwd: string, gitDir: string): string | undefined {
  const head = readFileSync(join(gitDir, "HEAD"), "utf8");
  if (/^[0-9a-f]{40,64}\n?$/.test(head)) return undefined;
  const [, name] = /^ref: refs\/heads\/(?!\.invalid$)(.+)\n?$/.exec(head) ?? [];
  if (name !== undefined) return name;
  // The full name, because a short one is ambiguous next to a tag of that name.
  const full = outputLine(runGit(cwd, ["symbolic-ref", "--quiet", "HEAD"]));
  return full?.replace(/^refs\/heads\//, "");
}

/** The id from the remote `origin`, or from the only remote. */
function findRemoteId(cwd: string): string | undefined {
  const remotes = new Map<string, string>();
  for (const line of runGit(cwd, ["remote", "-v"]).stdout.split("\n")) {
    const [, name, url] = /^(.+?)\t(.+) \(fetch\)/.exec(line) ?? [];
    if (name !== undefined && url !== undefined && !remotes.has(name)) remotes.set(name, url);
  }
  const [only] = remotes.size === 1 ? remotes.values() : [];
  const url = remotes.get("origin") ?? only;
  return url === undefined ? undefined : normaliseRemote(url);
}

function outputLine({ ok, stdout }: { ok: boolean; stdout: string }): string | undefined {
  const text = stdout.replace(/\n$/, "");
  return ok && text !== "" ? text : undefined;
}
