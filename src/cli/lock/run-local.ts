/**
 * Owns a local command that runs under a lease: its environment, its signals, its exit code.
 * Does not own the lease. The token is handed over by the environment alone: arguments are seen by everybody.
 */
import { spawn } from "node:child_process";
import type { Context } from "../context.ts";
import { Failure } from "../failure.ts";
import { exitCodeOf, type Interrupts } from "../live/interrupts.ts";
import { leasedVariable, leaseVariable, type Taken } from "./take-lease.ts";

type Around = { sandbox: string; lease: Taken; interrupts: Interrupts };

/** After TERM, for a command whose lease is lost. */
const endsWithinMs = 5_000;

export async function runLocal(
  { env, cwd }: Context,
  [program = "", ...args]: string[],
  { sandbox, lease, interrupts }: Around,
): Promise<number> {
  const child = spawn(program, args, {
    cwd,
    env: { ...env, [leaseVariable]: lease.token, [leasedVariable]: sandbox },
    stdio: "inherit",
  });
  const ended = new Promise<number>((resolve, reject) => {
    child.once("error", (error) => reject(notStarted(program, error)));
    child.once("exit", (code, signal) => resolve(code ?? exitCodeOf(signal ?? "SIGKILL")));
  });
  // A terminal's Ctrl-C reaches the command by itself; what was sent to us alone is passed on.
  const pass = () => {
    if (interrupts.first?.signal !== "SIGINT") child.kill(interrupts.first?.signal);
  };
  interrupts.asked.addEventListener("abort", pass);
  const insist = () => child.kill("SIGKILL");
  interrupts.insisted.addEventListener("abort", insist);
  let timer: NodeJS.Timeout | undefined;
  const end = () => {
    child.kill("SIGTERM");
    timer = setTimeout(insist, endsWithinMs);
  };
  lease.lost.addEventListener("abort", end);
  try {
    const code = await ended;
    if (lease.lost.aborted) throw lease.lost.reason;
    return code;
  } finally {
    clearTimeout(timer);
    interrupts.asked.removeEventListener("abort", pass);
    interrupts.insisted.removeEventListener("abort", insist);
    lease.lost.removeEventListener("abort", end);
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
