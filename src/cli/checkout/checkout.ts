/**
 * Owns where a command stands: the repository, its branch, the folder of the checkout.
 * Does not own its configuration (config.ts) nor the content of its files (sync/).
 */
import { realpathSync } from "node:fs";
import { Failure } from "../failure.ts";
import { askGit, noGit } from "./git.ts";
import { normaliseRemote, storedId } from "./repo-id.ts";

export type Checkout = {
  /** The folder that holds all of it. */
  root: string;
  /** Where the command stands, below the root; empty at the root itself. */
  below: string;
  gitDir: string;
  /** Shared by the worktrees of one repository. */
  commonDir: string;
  repo: string;
  /** Nothing where the head is detached. */
  branch: string | undefined;
  /** Nothing before the first commit. */
  commit: string | undefined;
  /** The branch as scopes have it. */
  branchKey: string;
};

export const detachedPrefix = "detached@";

/** `takesId`: a sandbox could have been named in its place. */
export function readCheckout(cwd: string, takesId: boolean): Checkout {
  const checkout = findCheckout(cwd);
  if (checkout !== undefined) return checkout;
  if (askGit(cwd, ["--version"]).code === noGit) {
    throw new Failure("git is not installed", {
      hint: takesId ? "Install git, or name a sandbox by --id." : "Install git.",
      code: "no_git",
    });
  }
  throw new Failure(`${cwd} is not inside a git checkout`, {
    hint: takesId
      ? "Change into one, run `git init`, or name a sandbox by --id."
      : "Change into one, or run `git init`.",
    code: "no_checkout",
  });
}

export function findCheckout(cwd: string): Checkout | undefined {
  const places = askGit(cwd, [
    "rev-parse",
    "--path-format=absolute",
    "--is-bare-repository",
    "--git-dir",
    "--git-common-dir",
    "--show-prefix",
    "--show-toplevel",
  ]);
  if (!places.ok) return refused(places.stderr);
  const [bare, gitDir = "", commonDir = "", below = "", root, ...rest] = places.stdout.split("\n");
  if (rest.length > 1) throw lineBreak(cwd);
  if (bare === "true" || root === undefined || root === "") return undefined;
  // Its short name would be another one beside a tag of that name.
  const head = line(askGit(cwd, ["symbolic-ref", "--quiet", "HEAD"]));
  const branch = head?.replace(/^refs\/heads\//, "");
  const commit = line(askGit(cwd, ["rev-parse", "--quiet", "--verify", "HEAD^{commit}"]));
  return {
    root: realpathSync(root),
    below: below.replace(/\/$/, ""),
    gitDir,
    commonDir,
    repo: repoOf(cwd) ?? storedId(commonDir),
    branch,
    commit,
    branchKey: branch ?? (commit === undefined ? "detached" : `${detachedPrefix}${commit}`),
  };
}

/** Not being in one is an answer; git being unwilling to say is a failure. */
function refused(stderr: string): undefined {
  if (/dubious ownership/.test(stderr)) {
    throw new Failure("git does not trust this checkout: it belongs to somebody else", {
      hint: "git config --global --add safe.directory <folder> says that you do.",
      code: "no_checkout",
    });
  }
  return undefined;
}

/** git tells places a line each. */
function lineBreak(cwd: string): Failure {
  return new Failure(`${JSON.stringify(cwd)} has a line break in its name`, {
    hint: "Rename the folder: git does not tell such places apart.",
    code: "no_checkout",
  });
}

/** `origin`, or the only remote there is. */
function repoOf(cwd: string): string | undefined {
  const origin = line(askGit(cwd, ["remote", "get-url", "origin"]));
  if (origin !== undefined) return normaliseRemote(origin);
  const names = askGit(cwd, ["remote"]).stdout.split("\n").filter(Boolean);
  const [only] = names;
  if (names.length !== 1 || only === undefined) return undefined;
  const url = line(askGit(cwd, ["remote", "get-url", only]));
  return url === undefined ? undefined : normaliseRemote(url);
}

function line({ ok, stdout }: { ok: boolean; stdout: string }): string | undefined {
  const text = stdout.replace(/\n$/, "");
  return ok && text !== "" ? text : undefined;
}
