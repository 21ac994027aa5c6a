/** Finds the checkout of the working directory: its folder, repository and branch. */
import { realpathSync } from "node:fs";
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
  /** Undefined before the first commit. */
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
  // The full name, because a short one is ambiguous next to a tag of that name.
  const head = outputLine(runGit(cwd, ["symbolic-ref", "--quiet", "HEAD"]));
  const branch = head?.replace(/^refs\/heads\//, "");
  const commit = outputLine(runGit(cwd, ["rev-parse", "--quiet", "--verify", "HEAD^{commit}"]));
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

/** The id from the remote `origin`, or from the only remote. */
function findRemoteId(cwd: string): string | undefined {
  const origin = outputLine(runGit(cwd, ["remote", "get-url", "origin"]));
  if (origin !== undefined) return normaliseRemote(origin);
  const names = runGit(cwd, ["remote"]).stdout.split("\n").filter(Boolean);
  const [only] = names;
  if (names.length !== 1 || only === undefined) return undefined;
  const url = outputLine(runGit(cwd, ["remote", "get-url", only]));
  return url === undefined ? undefined : normaliseRemote(url);
}

function outputLine({ ok, stdout }: { ok: boolean; stdout: string }): string | undefined {
  const text = stdout.replace(/\n$/, "");
  return ok && text !== "" ? text : undefined;
}
