import { execFileSync } from "node:child_process";
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeEach, describe, expect, it, vi } from "vitest";
import { findCheckout } from "../../../src/cli/checkout/checkout.ts";

const folder = mkdtempSync(join(tmpdir(), "berth-checkout-"));
const calls = join(folder, "calls");
const repo = join(folder, "repo");
const identity = ["-c", "user.name=User", "-c", "user.email=user@example.com"];

function git(cwd: string, ...args: string[]): string {
  return execFileSync("git", [...identity, ...args], { cwd, encoding: "utf8", stdio: "pipe" });
}

/** What `find` gives, and how often it called git. */
function counted(cwd: string) {
  writeFileSync(calls, "");
  const real = execFileSync("sh", ["-c", "command -v git"], { encoding: "utf8" }).trim();
  const bin = mkdtempSync(join(folder, "bin-"));
  writeFileSync(join(bin, "git"), `#!/bin/sh\necho "$*" >> ${calls}\nexec ${real} "$@"\n`);
  chmodSync(join(bin, "git"), 0o755);
  vi.stubEnv("PATH", `${bin}:${process.env.PATH}`);
  const checkout = findCheckout(cwd);
  vi.unstubAllEnvs();
  return { checkout, calls: readFileSync(calls, "utf8").trim().split("\n").length };
}

beforeEach(() => {
  rmSync(repo, { recursive: true, force: true });
  execFileSync("git", ["init", "-q", "-b", "work/one", repo]);
  git(repo, "commit", "-q", "--allow-empty", "-m", "first");
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe("the checkout of a folder", () => {
  it("[CL40] is found by two calls of git on a branch, next to a tag of the same name and before the first commit", () => {
    git(repo, "tag", "work/one");
    git(repo, "remote", "add", "origin", "git@github.com:owner/name.git");
    const repository = { repo: "github.com/owner/name" };
    const branch = { ...repository, branch: "work/one", branchKey: "work/one" };
    expect(counted(repo)).toMatchObject({ checkout: branch, calls: 2 });
    git(repo, "worktree", "add", "-q", "-b", "two", "../two");
    expect(counted(join(folder, "two"))).toMatchObject({
      checkout: { ...repository, branch: "two" },
      calls: 2,
    });
    git(repo, "checkout", "-q", "--orphan", "new");
    expect(counted(repo)).toMatchObject({ checkout: { branch: "new" }, calls: 2 });
    git(repo, "checkout", "-q", "two", "--detach");
    const sha = git(repo, "rev-parse", "HEAD").trim();
    expect(counted(repo).checkout).toMatchObject({
      branch: undefined,
      commit: sha,
      branchKey: `detached@${sha}`,
    });
    git(repo, "worktree", "remove", "--force", "../two");
  });

  it("[CL40] has the repository of `origin`, else of the only remote, as git rewrites its address", () => {
    git(repo, "remote", "add", "first", "hub:owner/first");
    git(repo, "config", "url.https://github.com/.insteadOf", "hub:");
    expect(counted(repo).checkout?.repo).toBe("github.com/owner/first");
    git(repo, "remote", "add", "second", "hub:owner/second");
    expect(counted(repo).checkout?.repo).toMatch(/^id\//);
    git(repo, "remote", "add", "origin", "hub:owner/third");
    git(repo, "config", "remote.origin.promisor", "true");
    git(repo, "config", "remote.origin.partialclonefilter", "blob:none");
    expect(counted(repo).checkout?.repo).toBe("github.com/owner/third");
  });
});
