/**
 * Owns one run of git as a command of the sandbox: its environment, its words as they come, its end with its tree.
 * Does not own what it is run for.
 */
import { closeSync, openSync } from "node:fs";
import { BerthError } from "../../../src/protocol/error-codes.ts";
import { limits } from "../../../src/protocol/limits.ts";
import { exitOrCut } from "../exec/exit-or-cut.ts";
import { findProgram } from "../exec/program.ts";
import { environmentOf, type Place } from "../exec/sandbox-env.ts";
import { giveDescriptor, openPipe } from "../kernel/libc.ts";
import { PipeReader } from "../kernel/pipe.ts";
import { within } from "../server/timeout.ts";
import type { Exit, Forest, Tree } from "../supervision/process-tree.ts";
import type { Credentials } from "./address.ts";
import { memoryFor, settingsFor } from "./credentials.ts";

export type Run = {
  args: string[];
  cwd: string;
  credentials: Credentials | undefined;
  timeoutMs: number;
  said: (bytes: Uint8Array) => void;
};

export type Ran = Exit & { timedOut: boolean };

const protocols = "https:http:ssh:git:file";
/** The credentials come as input, and move out of the way of whoever reads input. */
const script = 'exec 3<&0 </dev/null; exec git "$@"';

/** Must stay synchronous down to the start of the process: between a look at the fence and that, nobody can raise it. */
export async function runGit(
  { place, forest }: { place: Place; forest: Forest },
  run: Run,
  gone: AbortSignal,
): Promise<Ran> {
  const env = environmentFor(place, run.credentials);
  demandGit(run.cwd, env, place);
  const [read, write] = openPipe();
  const stdin = memoryFor(run.credentials);
  const nowhere = openSync("/dev/null", "w");
  const { user } = place;
  let tree: Tree;
  try {
    if (user !== undefined) giveDescriptor(write, user);
    const argv = ["sh", "-c", script, "git", ...run.args];
    const launch = { program: "/bin/sh", argv, cwd: run.cwd, env, user };
    tree = await forest.start({ ...launch, stdin, stdout: nowhere, stderr: write });
  } catch (error) {
    closeSync(read);
    throw error;
  } finally {
    for (const fd of [write, nowhere]) closeSync(fd);
    if (stdin !== "ignore") closeSync(stdin);
  }
  const said = new PipeReader(read, run.said);
  const cut = await exitOrCut(tree, run.timeoutMs, gone);
  if (cut !== undefined) {
    tree.terminate();
    await tree.empty(limits.execKillGraceMs);
  } else await within(said.ended, limits.execDrainMs);
  await tree.end();
  if (!(await within(said.ended, limits.execDrainMs))) said.stop();
  await said.ended;
  if (cut === "gone") throw gone.reason;
  return { ...(await tree.exited), timedOut: cut === "timeout" };
}

/** What git is told by the environment goes before all settings of the sandbox, and is written nowhere. */
function environmentFor(place: Place, credentials: Credentials | undefined) {
  const settings = settingsFor(credentials);
  const told = Object.fromEntries(
    settings.flatMap(([key, value], at) => [
      [`GIT_CONFIG_KEY_${at}`, key],
      [`GIT_CONFIG_VALUE_${at}`, value],
    ]),
  );
  return environmentOf(place, {
    ...{ GIT_SSH_COMMAND: "ssh -oBatchMode=yes", ...place.env },
    ...{ GIT_TERMINAL_PROMPT: "0", GIT_ALLOW_PROTOCOL: protocols, LC_ALL: "C" },
    ...(settings.length === 0 ? {} : { ...told, GIT_CONFIG_COUNT: String(settings.length) }),
  });
}

function demandGit(cwd: string, env: Record<string, string>, { user }: Place): void {
  if (typeof findProgram("git", { cwd, env, user }) === "string") return;
  throw new BerthError("unsupported", "this container has no git", {
    hint: "install it by a command, or use an image that has it",
  });
}
