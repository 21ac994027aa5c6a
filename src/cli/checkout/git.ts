/**
 * Owns asking git about a checkout: with arguments and not through a shell, never by text meant for people.
 * Does not own what travels to a sandbox: sync/ asks for that itself.
 */
import { spawnSync } from "node:child_process";
import { Failure } from "../failure.ts";

const answersWithinMs = 30_000;
const answerBytesMax = 16 * 1024 * 1024;

/** As a shell has it for a program that is not there. */
export const noGit = 127;

export type Answered = { ok: boolean; code: number; stdout: string; stderr: string };

export function askGit(cwd: string, args: string[]): Answered {
  const done = spawnSync("git", args, {
    cwd,
    env: gitEnvironment(process.env),
    encoding: "utf8",
    timeout: answersWithinMs,
    maxBuffer: answerBytesMax,
    stdio: ["ignore", "pipe", "pipe"],
  });
  if (done.error !== undefined) {
    const isMissing = (done.error as NodeJS.ErrnoException).code === "ENOENT";
    if (isMissing) return { ok: false, code: noGit, stdout: "", stderr: "" };
    throw new Failure(`git ${args[0]} failed: ${done.error.message}`, { code: "git_failed" });
  }
  const { status, stdout, stderr } = done;
  return { ok: status === 0, code: status ?? -1, stdout, stderr };
}

/** What a caller within a hook or an alias has set is about another repository than the folder's. */
function gitEnvironment(own: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const env = Object.entries(own).filter(
    ([name]) => !name.startsWith("GIT_") || /^GIT_(CONFIG_|SSH|EXEC_PATH)/.test(name),
  );
  return { ...Object.fromEntries(env), LC_ALL: "C", GIT_TERMINAL_PROMPT: "0" };
}
