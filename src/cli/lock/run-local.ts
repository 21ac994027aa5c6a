/** Runs a local command under a lease. The token is passed by the environment only: other users can see arguments. */
import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, openSync } from "node:fs";
import type { Sandbox as SandboxHandle } from "../../client/index.ts";
import type { Context } from "../context.ts";
import { Failure } from "../failure.ts";
import { signalExitCode } from "../interrupts.ts";
import { endScripts } from "../sync/run-script.ts";
import {
  type CommandLease,
  leaseSandboxVariable,
  leaseVariable,
  queueVariable,
} from "./acquire-lease.ts";
import { type LeasedWork, LeaseQueue } from "./lease-queue.ts";

/** How long after the first signal the command is killed. */
const killDelayMs = 10_000;

export async function runLocal(
  { env, cwd, interrupts }: Context,
  [program = "", ...args]: string[],
  sandbox: SandboxHandle,
  lease: CommandLease,
): Promise<number> {
  interrupts.requested.throwIfAborted();
  lease.lost.throwIfAborted();
  // Without a terminal the command is a process group of its own, so that a signal reaches all it started.
  const isGroup = !hasTerminal();
  // A terminal's Ctrl-C reaches the command by itself.
  if (!isGroup) interrupts.ignore("SIGINT");
  using queue = await LeaseQueue.open((work) => endOrphans(sandbox, lease.token, work));
  const child = spawn(program, args, {
    cwd,
    env: {
      ...env,
      [leaseVariable]: lease.token,
      [leaseSandboxVariable]: sandbox.id,
      [queueVariable]: queue.path,
    },
    stdio: "inherit",
    detached: isGroup,
  });
  const ended = new Promise<number>((resolve, reject) => {
    child.once("error", (error) => reject(spawnFailure(program, error)));
    child.once("exit", (code, signal) => resolve(code ?? signalExitCode(signal ?? "SIGKILL")));
  });
  let timer: NodeJS.Timeout | undefined;
  const kill = () => send(child, "SIGKILL", isGroup);
  const end = (signal: NodeJS.Signals) => {
    send(child, signal, isGroup);
    timer ??= setTimeout(kill, killDelayMs);
  };
  const passOn = () => end((interrupts.first?.signal ?? "SIGTERM") as NodeJS.Signals);
  const over = new AbortController();
  const options = { signal: over.signal };
  interrupts.requested.addEventListener("abort", passOn, options);
  interrupts.forced.addEventListener("abort", kill, options);
  lease.lost.addEventListener("abort", () => end("SIGTERM"), options);
  try {
    const code = await ended;
    if (lease.lost.aborted) throw lease.lost.reason;
    return code;
  } finally {
    clearTimeout(timer);
    // Processes that a shell left in the background ignore SIGINT.
    if (isGroup && timer !== undefined) send(child, "SIGTERM", isGroup);
    over.abort();
  }
}

function hasTerminal(): boolean {
  try {
    closeSync(openSync("/dev/tty", "r"));
    return true;
  } catch {
    return false;
  }
}

function send(child: ChildProcess, signal: NodeJS.Signals, isGroup: boolean): void {
  const { pid } = child;
  if (pid === undefined) return;
  if (!isGroup) return void child.kill(signal);
  try {
    process.kill(-pid, signal);
  } catch {
    // The whole group has ended.
  }
}

function spawnFailure(program: string, error: NodeJS.ErrnoException): Failure {
  const isMissing = error.code === "ENOENT";
  return new Failure(
    `\`${program}\` could not be started: ${isMissing ? "not found" : error.code}.`,
    {
      hint: "`berth lock` runs it on this machine; `berth exec` runs it in the sandbox.",
      code: "local_command",
      exitCode: isMissing ? 127 : 126,
    },
  );
}

const answerWithinMs = 10_000;

/**
 * Ends what a command that died has left running in the sandbox while it shared this lease. What cannot be ended now
 * ends with the lease.
 */
async function endOrphans(
  sandbox: SandboxHandle,
  lease: string,
  work: LeasedWork[],
): Promise<void> {
  const ends = work.map((item) => endWork(sandbox, lease, item).catch(() => {}));
  await Promise.all([...ends, endScripts(sandbox, lease)]);
}

async function endWork(sandbox: SandboxHandle, lease: string, work: LeasedWork): Promise<void> {
  if ("terminal" in work)
    return void (await sandbox.terminal(work.terminal).delete({ answerWithinMs }));
  const { state } = await sandbox.process(work.process).get({ answerWithinMs });
  // `delete` on a process that has exited would delete its log.
  if (state === "running") await sandbox.process(work.process).delete({ lease, answerWithinMs });
}
