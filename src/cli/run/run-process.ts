/** Runs a remote command live: passes its output and input on, and ends it with an interrupt or with the lease. */
import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { Sandbox as SandboxHandle } from "../../client/index.ts";
import { asBerthError } from "../../protocol/error-codes.ts";
import type { Context } from "../context.ts";
import { signalExitCode } from "../interrupts.ts";
import type { CommandLease } from "../lock/acquire-lease.ts";
import type { OutputSink } from "./output-sinks.ts";
import type { Program } from "./to-program.ts";

export type ProcessExit = {
  exitCode: number | null;
  signal: string | null;
  timedOut: boolean;
  /** Processes that it left running, and that were ended. */
  leftovers?: number;
};

/** How long after the first interrupt the command is killed. */
const killDelayMs = 10_000;
/** When to say that the interrupt has not ended it yet. */
const slowEndMs = 1_000;

export async function runProcess(
  context: Context,
  program: Program,
  sandbox: SandboxHandle,
  lease: CommandLease,
  sink: OutputSink,
): Promise<ProcessExit> {
  const { id } = await sandbox.processes.start(
    { ...program, onFull: "block", endsWithLease: true },
    // The key makes a repeated call start no second process.
    { lease: lease.token, idempotencyKey: randomUUID() },
  );
  lease.registerWork({ process: id });
  const over = new AbortController();
  const target = { sandbox, process: id, lease: lease.token };
  // If it fails, the process has ended or the connection is lost: following the log reports it.
  const isFed = program.stdin !== "none";
  const stdinSent = isFed
    ? feedStdin(context.stdin, target, over.signal).catch(() => {})
    : Promise.resolve();
  const interrupted = endOnInterrupt(context, target, over.signal);
  const onConnection = (state: "lost" | "back") => printConnection(context, state);
  try {
    for await (const event of sandbox.process(id).logs({ signal: lease.lost, onConnection })) {
      if (event.type === "output") await sink.write(event.stream, event.bytes);
      if (event.type === "exit") {
        const { exitCode, signal, timedOut, leftovers } = event;
        // A lost lease ends the command by a signal too, and that must not look like an exit of its own.
        if (signal !== null && context.interrupts.first === undefined) {
          await sandbox.lease.renew(lease.token);
        }
        return { exitCode, signal, timedOut, ...(leftovers !== undefined && { leftovers }) };
      }
    }
    throw new Error(`the log of process ${id} ended without its exit`);
  } finally {
    over.abort();
    context.stdin.destroy();
    await Promise.all([stdinSent, interrupted]);
  }
}

/** Ctrl-C is first sent to the remote command as a signal; later the command is killed. */
async function endOnInterrupt(
  { interrupts, output, json }: Context,
  { sandbox, process, lease }: StdinTarget,
  over: AbortSignal,
): Promise<void> {
  await waitForEither(interrupts.requested, over);
  const { first, forced } = interrupts;
  if (over.aborted || first === undefined) return;
  const options = { lease, signal: over };
  // Kills at once when nobody reads the output: many programs would not notice a closed pipe.
  if (first.signal !== "SIGPIPE") {
    await sandbox
      .process(process)
      .kill(first.signal, options)
      .catch(() => {});
    const killTimeout = AbortSignal.timeout(killDelayMs);
    await waitForEither(AbortSignal.any([forced, AbortSignal.timeout(slowEndMs)]), over);
    if (!over.aborted && !forced.aborted && !json) {
      output.info("The command has not ended yet. Press Ctrl-C again to kill it.");
    }
    await waitForEither(AbortSignal.any([forced, killTimeout]), over);
  }
  if (over.aborted) return;
  await sandbox
    .process(process)
    .delete(options)
    .catch(() => {});
}

/** One line for each cut: the output that follows shows that the connection is back. */
function printConnection({ output, json }: Context, state: "lost" | "back"): void {
  if (!json && state === "lost") output.info("Connection lost; reconnecting.");
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

type StdinTarget = { sandbox: SandboxHandle; process: string; lease: string };

const chunkBytes = 1024 * 1024;
const retryDelayMs = 500;
/** Limits lost responses in a row. */
const failuresMax = 60;

/**
 * Sends this command's standard input by offset, so that no byte is sent twice. A terminal is not read: without `--tty`
 * the remote command has an empty input. Resolves when everything was sent, when the process no longer reads, or when
 * `over` aborts.
 */
async function feedStdin(
  input: NodeJS.ReadStream,
  target: StdinTarget,
  over: AbortSignal,
): Promise<void> {
  let offset = 0;
  if (input.isTTY !== true) {
    for await (const chunk of readChunks(input, over)) {
      const accepted = await write(target, chunk, { offset, eof: false }, over);
      if (accepted === undefined) return;
      offset = accepted;
    }
  }
  if (!over.aborted) await write(target, new Uint8Array(), { offset, eof: true }, over);
}

/** Sends what has already arrived together, because a write takes a round trip. */
async function* readChunks(
  input: NodeJS.ReadStream,
  over: AbortSignal,
): AsyncGenerator<Uint8Array, void, undefined> {
  const end = () => input.destroy();
  over.addEventListener("abort", end);
  if (over.aborted) end();
  try {
    for await (const chunk of input) {
      const rest = input.readableLength > 0 ? (input.read() as Buffer | null) : null;
      const all = rest === null ? chunk : Buffer.concat([chunk, rest]);
      for (let start = 0; start < all.length; start += chunkBytes) {
        yield all.subarray(start, start + chunkBytes);
      }
    }
  } catch (error) {
    // Destroyed above, because the command is over.
    if (!over.aborted) throw error;
  } finally {
    over.removeEventListener("abort", end);
  }
}

/** The offset after the write; undefined if the process takes no more. */
async function write(
  { sandbox, process, lease }: StdinTarget,
  bytes: Uint8Array,
  position: { offset: number; eof: boolean },
  over: AbortSignal,
): Promise<number | undefined> {
  let failures = 0;
  while (!over.aborted) {
    try {
      const options = { ...position, lease, signal: over };
      return (await sandbox.process(process).write(bytes, options)).offset;
    } catch (thrown) {
      if (over.aborted) return undefined;
      const code = asBerthError(thrown)?.code;
      if (code === "stdin_closed") return undefined;
      // The process is not reading now, or the response was lost. The server skips what it already has.
      const isTransient = code === "unavailable" || code === "operation_interrupted";
      failures = code === "unavailable" ? 0 : failures + 1;
      if (!isTransient || failures > failuresMax) throw thrown;
      await sleep(retryDelayMs);
    }
  }
  return undefined;
}
