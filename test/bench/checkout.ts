/** A checkout of a user who has no settings of their own. */
import { execFileSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const author = ["-c", "user.name=bench", "-c", "user.email=bench@example.com"];

/** A repository with one commit of so many files, below the home folder. */
export function createCheckout(home: string, files: number): string {
  const folder = join(home, "checkout");
  for (let index = 0; index < files; index += 1) {
    const below = join(folder, `folder-${index % 20}`);
    mkdirSync(below, { recursive: true });
    writeFileSync(join(below, `file-${index}`), `${index}\n`.repeat(100));
  }
  runGit(home, folder, "init", "-q");
  commitAll(home, folder);
  return folder;
}

export function commitAll(home: string, folder: string): void {
  runGit(home, folder, "add", "-A");
  runGit(home, folder, ...author, "commit", "-q", "-m", "a state");
}

export function runGit(home: string, cwd: string, ...args: string[]): void {
  execFileSync("git", args, { cwd, env: userEnvironment(home), stdio: "ignore" });
}

export function userEnvironment(home: string): NodeJS.ProcessEnv {
  const { PATH } = process.env;
  const cache = join(home, "compile-cache");
  return { PATH, HOME: home, GIT_CONFIG_NOSYSTEM: "1", NODE_COMPILE_CACHE: cache };
}
