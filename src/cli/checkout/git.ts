/** Runs git to ask about a checkout: with arguments and not through a shell, and only for output meant for programs. */
import { spawnSync } from "node:child_process";
import { Failure } from "../failure.ts";

const gitTimeoutMs = 30_000;
const outputBytesMax = 16 * 1024 * 1024;

/** The exit code of a shell for a missing program. */
export const noGit = 127;

type GitOutput = { ok: boolean; code: number; stdout: string; stderr: string };

export function runGit(cwd: string, args: string[]): GitOutput {
  const done = spawnSync("git", args, {
    cwd,
    env: gitEnvironment(process.env),
    encoding: "utf8",
    timeout: gitTimeoutMs,
    maxBuffer: outputBytesMax,
    stdio: ["ignore", "pipe", "pipe"],
  });
  if (done.error !== undefined) {
    const isMissing = (done.error as NodeJS.ErrnoException).code === "ENOENT";
    if (isMissing) return { ok: false, code: noGit, stdout: "", stderr: "" };
    throw new Failure(`\`git ${args[0]}\` failed: ${done.error.message}.`, { code: "git_failed" });
  }
  const { status, stdout, stderr } = done;
  return { ok: status === 0, code: status ?? -1, stdout, stderr };
}

/** In a hook or an alias, git's variables describe another repository than this folder's. */
function gitEnvironment(own: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const env = Object.entries(own).filter(
    ([name]) => !name.startsWith("GIT_") || /^GIT_(CONFIG_|SSH|EXEC_PATH)/.test(name),
  );
  return { ...Object.fromEntries(env), LC_ALL: "C", GIT_TERMINAL_PROMPT: "0" };
}
