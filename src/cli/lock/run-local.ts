/**
 * Runs a local command under a lease: its environment, signals and exit code. The token is passed by the environment
 * only, because other users can see arguments.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, openSync } from "node:fs";
import type { SandboxHandle } from "../../client/index.ts";
import type { Context } from "../context.ts";
import { Failure } from "../failure.ts";
import { type Interrupts, signalExitCode } from "../interrupts.ts";
import {
  type CommandLease,
  leaseSandboxVariable,
  leaseVariable,
  queueVariable,
} from "./acquire-lease.ts";
import { endOrphans } from "./end-orphans.ts";
import { LeaseQueue } from "./lease-queue.ts";

type LocalRunDeps = { sandbox: SandboxHandle; lease: CommandLease; interrupts: Interrupts };

/** How long after the first signal the command is killed. */
const killDelayMs = 10_000;

export async function runLocal(
  { env, cwd }: Context,
  [program = "", ...args]: string[],
  { sandbox, lease, interrupts }: LocalRunDeps,
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
      ...{ ...env, [leaseVariable]: lease.token, [leaseSandboxVariable]: sandbox.id },
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
  const endOnLoss = () => end("SIGTERM");
  interrupts.requested.addEventListener("abort", passOn);
  interrupts.forced.addEventListener("abort", kill);
  lease.lost.addEventListener("abort", endOnLoss);
  try {
    const code = await ended;
    if (lease.lost.aborted) throw lease.lost.reason;
    return code;
  } finally {
    clearTimeout(timer);
    // Processes that a shell left in the background ignore SIGINT.
    if (isGroup && timer !== undefined) send(child, "SIGTERM", isGroup);
    interrupts.requested.removeEventListener("abort", passOn);
    interrupts.forced.removeEventListener("abort", kill);
    lease.lost.removeEventListener("abort", endOnLoss);
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
