/** Runs git once, as a command of the sandbox: its environment, its messages as they arrive, and the end of its tree. */
import { closeSync, openSync } from "node:fs";
import { BerthError } from "../../../src/protocol/error-codes.ts";
import { limits } from "../../../src/protocol/limits.ts";
import { findProgram } from "../exec/program.ts";
import { buildEnvironment, type SandboxEnv } from "../exec/sandbox-env.ts";
import { waitForExit } from "../exec/wait-for-exit.ts";
import { chownDescriptor, openPipe } from "../kernel/libc.ts";
import { PipeReader } from "../kernel/pipe.ts";
import type { SandboxDeps } from "../sandbox-deps.ts";
import { resolvesWithin } from "../server/timeout.ts";
import type { Exit, ProcessTree } from "../supervision/process-tree.ts";
import type { Credentials } from "./address.ts";
import { gitSettings, openCredentialsFile } from "./credentials.ts";

type GitRun = {
  args: string[];
  cwd: string;
  credentials: Credentials | undefined;
  timeoutMs: number;
  onStderr: (bytes: Uint8Array) => void;
};

type GitResult = Exit & { timedOut: boolean };

const protocols = "https:http:ssh:git:file";
/** The credentials arrive as standard input and move to descriptor 3, where no program reads input. */
const script = 'exec 3<&0 </dev/null; exec git "$@"';

/** Must stay synchronous down to the start of the process: nothing can raise the fence between its check and the start. */
export async function runGit(
  { sandboxEnv, supervisor }: Pick<SandboxDeps, "sandboxEnv" | "supervisor">,
  run: GitRun,
  signal: AbortSignal,
): Promise<GitResult> {
  const env = gitEnvironment(sandboxEnv, run.credentials);
  requireGit(run.cwd, env, sandboxEnv);
  const [read, write] = openPipe();
  const stdin = openCredentialsFile(run.credentials);
  const devNull = openSync("/dev/null", "w");
  const { user } = sandboxEnv;
  let tree: ProcessTree;
  try {
    if (user !== undefined) chownDescriptor(write, user);
    const argv = ["sh", "-c", script, "git", ...run.args];
    const launch = { program: "/bin/sh", argv, cwd: run.cwd, env, user };
    tree = await supervisor.start({ ...launch, stdin, stdout: devNull, stderr: write });
  } catch (error) {
    closeSync(read);
    throw error;
  } finally {
    for (const fd of [write, devNull]) closeSync(fd);
    if (stdin !== "ignore") closeSync(stdin);
  }
  const stderr = new PipeReader(read, run.onStderr);
  const reason = await waitForExit(tree, run.timeoutMs, signal);
  if (reason !== undefined) {
    tree.terminate();
    await tree.waitUntilEmpty(limits.execKillGraceMs);
  } else await resolvesWithin(stderr.ended, limits.execDrainMs);
  await tree.end();
  if (!(await resolvesWithin(stderr.ended, limits.execDrainMs))) stderr.stop();
  await stderr.ended;
  if (reason === "aborted") throw signal.reason;
  return { ...(await tree.exited), timedOut: reason === "timeout" };
}

/** Settings in the environment win over all settings of the sandbox, and are not written to a file. */
function gitEnvironment(sandboxEnv: SandboxEnv, credentials: Credentials | undefined) {
  const settings = gitSettings(credentials);
  const variables = Object.fromEntries(
    settings.flatMap(([key, value], index) => [
      [`GIT_CONFIG_KEY_${index}`, key],
      [`GIT_CONFIG_VALUE_${index}`, value],
    ]),
  );
  return buildEnvironment(sandboxEnv, {
    ...{ GIT_SSH_COMMAND: "ssh -oBatchMode=yes", ...sandboxEnv.env },
    ...{ GIT_TERMINAL_PROMPT: "0", GIT_ALLOW_PROTOCOL: protocols, LC_ALL: "C" },
    ...(settings.length === 0 ? {} : { ...variables, GIT_CONFIG_COUNT: String(settings.length) }),
  });
}

function requireGit(cwd: string, env: Record<string, string>, { user }: SandboxEnv): void {
  if (typeof findProgram("git", { cwd, env, user }) === "string") return;
  throw new BerthError("unsupported", "This container has no git.", {
    hint: "Install it with a command, or use an image that has it.",
  });
}
