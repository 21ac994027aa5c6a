/**
 * Owns a local command that runs under a lease: its environment, its signals, its exit code.
 * Does not own the lease. The token is handed over by the environment alone: arguments are seen by everybody.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, openSync } from "node:fs";
import type { SandboxHandle } from "../../client/index.ts";
import type { Context } from "../context.ts";
import { Failure } from "../failure.ts";
import { exitCodeOf, type Interrupts } from "../live/interrupts.ts";
import { clearAway } from "./clear-away.ts";
import { leasedVariable, leaseVariable, type Taken, turnsVariable } from "./take-lease.ts";
import { Turns } from "./turns.ts";

type Around = { sandbox: SandboxHandle; lease: Taken; interrupts: Interrupts };

/** After it was asked to end. */
const endsWithinMs = 10_000;

export async function runLocal(
  { env, cwd }: Context,
  [program = "", ...args]: string[],
  { sandbox, lease, interrupts }: Around,
): Promise<number> {
  interrupts.asked.throwIfAborted();
  lease.lost.throwIfAborted();
  // Without a terminal it is a group of its own: a signal reaches all that it started.
  const isGroup = !hasTerminal();
  // The keys of a terminal reach it by themselves, and mean whatever it takes them for.
  if (!isGroup) interrupts.leave("SIGINT");
  using turns = await Turns.open((work) => clearAway(sandbox, lease.token, work));
  const child = spawn(program, args, {
    cwd,
    env: {
      ...{ ...env, [leaseVariable]: lease.token, [leasedVariable]: sandbox.id },
      [turnsVariable]: turns.path,
    },
    stdio: "inherit",
    detached: isGroup,
  });
  const ended = new Promise<number>((resolve, reject) => {
    child.once("error", (error) => reject(notStarted(program, error)));
    child.once("exit", (code, signal) => resolve(code ?? exitCodeOf(signal ?? "SIGKILL")));
  });
  let timer: NodeJS.Timeout | undefined;
  const insist = () => send(child, "SIGKILL", isGroup);
  const end = (signal: NodeJS.Signals) => {
    send(child, signal, isGroup);
    timer ??= setTimeout(insist, endsWithinMs);
  };
  const pass = () => end((interrupts.first?.signal ?? "SIGTERM") as NodeJS.Signals);
  const lose = () => end("SIGTERM");
  interrupts.asked.addEventListener("abort", pass);
  interrupts.insisted.addEventListener("abort", insist);
  lease.lost.addEventListener("abort", lose);
  try {
    const code = await ended;
    if (lease.lost.aborted) throw lease.lost.reason;
    return code;
  } finally {
    clearTimeout(timer);
    // What a shell has left in the background hears no SIGINT.
    if (isGroup && timer !== undefined) send(child, "SIGTERM", isGroup);
    interrupts.asked.removeEventListener("abort", pass);
    interrupts.insisted.removeEventListener("abort", insist);
    lease.lost.removeEventListener("abort", lose);
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
    // All of it has ended.
  }
}

function notStarted(program: string, error: NodeJS.ErrnoException): Failure {
  const isMissing = error.code === "ENOENT";
  return new Failure(`${program} could not be started: ${isMissing ? "not found" : error.code}`, {
    hint: "It is looked for on this machine; `berth exec` runs in the sandbox.",
    code: "local_command",
    exitCode: isMissing ? 127 : 126,
  });
}
