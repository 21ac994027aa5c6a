/**
 * Runs a remote command live: starts it under the lease, passes its output and input on, and ends it with an interrupt
 * or with the lease. See run.ts for what happens before and after.
 */
import { randomUUID } from "node:crypto";
import type { SandboxHandle } from "../../client/index.ts";
import { type Interrupts, signalExitCode } from "../interrupts.ts";
import type { CommandLease } from "../lock/acquire-lease.ts";
import { feedStdin } from "./feed-stdin.ts";
import type { OutputSink } from "./output-sinks.ts";

export type Program = {
  argv: string[];
  cwd?: string;
  env?: Record<string, string>;
  timeoutMs?: number;
};

export type ProcessExit = { exitCode: number | null; signal: string | null; timedOut: boolean };

type ProcessDeps = {
  sandbox: SandboxHandle;
  lease: CommandLease;
  interrupts: Interrupts;
  stdin: NodeJS.ReadStream;
  sinks: OutputSink;
  onConnection: (state: "lost" | "back") => void;
  /** Called when the command has not ended soon after an interrupt. */
  onSlowEnd: () => void;
};

/** How long after the first interrupt the command is killed. */
const killDelayMs = 10_000;
/** When to say that the interrupt has not ended it yet. */
const slowEndMs = 1_000;

export async function runProcess(program: Program, deps: ProcessDeps): Promise<ProcessExit> {
  const { sandbox, lease, sinks } = deps;
  const { id } = await sandbox.startProcess(
    { ...program, onFull: "block", endsWithLease: true },
    // The key makes a repeated call start no second process.
    { lease: lease.token, idempotencyKey: randomUUID() },
  );
  lease.registerWork({ process: id });
  const over = new AbortController();
  const stdinSent = feedStdin(
    deps.stdin,
    { sandbox, process: id, lease: lease.token },
    over.signal,
  ).catch(() => {
    // The process has ended or the connection is lost: following the log reports it.
  });
  const interrupted = endOnInterrupt(id, deps, over.signal);
  try {
    const signal = lease.lost;
    const { onConnection } = deps;
    for await (const event of sandbox.followLogs(id, { signal, onConnection })) {
      if (event.type === "output") await sinks.write(event.stream, event.bytes);
      if (event.type === "exit") {
        const { exitCode, signal: ended, timedOut } = event;
        return { exitCode, signal: ended, timedOut };
      }
    }
    throw new Error(`the log of process ${id} ended without its exit`);
  } finally {
    over.abort();
    deps.stdin.destroy();
    await Promise.all([stdinSent, interrupted]);
  }
}

/** Ctrl-C is first sent to the remote command as a signal; later the command is killed. */
async function endOnInterrupt(
  id: string,
  { sandbox, lease, interrupts, onSlowEnd }: ProcessDeps,
  over: AbortSignal,
): Promise<void> {
  await waitForEither(interrupts.requested, over);
  const { first } = interrupts;
  if (over.aborted || first === undefined) return;
  const options = { lease: lease.token, signal: over };
  // Kills at once when nobody reads the output: many programs would not notice a closed pipe.
  if (first.signal !== "SIGPIPE") {
    await sandbox.signalProcess(id, first.signal, options).catch(() => {});
    const { forced } = interrupts;
    const killTimeout = AbortSignal.timeout(killDelayMs);
    await waitForEither(AbortSignal.any([forced, AbortSignal.timeout(slowEndMs)]), over);
    if (!over.aborted && !forced.aborted) onSlowEnd();
    await waitForEither(AbortSignal.any([forced, killTimeout]), over);
  }
  if (over.aborted) return;
  await sandbox.endProcess(id, options).catch(() => {});
}

function waitForEither(first: AbortSignal, second: AbortSignal): Promise<void> {
  const any = AbortSignal.any([first, second]);
  if (any.aborted) return Promise.resolve();
  return new Promise((resolve) => any.addEventListener("abort", () => resolve(), { once: true }));
}

/** The exit code that a shell would report; 124 for a timeout, as `timeout` does. */
export function toExitCode({ exitCode, signal, timedOut }: ProcessExit): number {
  if (timedOut) return 124;
  return exitCode ?? signalExitCode(signal ?? "SIGKILL");
}
