/** Runs one command in a session, from its turn to its result. A command that is interrupted ends the session too. */
import { BerthError } from "../../../src/protocol/error-codes.ts";
import type { AgentSessionExecCall } from "../../../src/protocol/internal/agent.ts";
import { limits } from "../../../src/protocol/limits.ts";
import type { Finished } from "../exec/command.ts";
import { Output } from "../exec/output.ts";
import { abortReason } from "../exec/queue.ts";
import type { GatedCall, GatedWork } from "../server/gated-work.ts";
import { resolvesWithin } from "../server/timeout.ts";
import type { SessionFolder } from "./folder.ts";
import { Pipes } from "./pipes.ts";
import type { CommandEnd } from "./script.ts";
import { commandInterrupted, type Reason, type Session } from "./session.ts";

/**
 * Throws at once if the fence is too low or too many wait. From then on it is gated work: a fence that rises without a
 * drain leaves it in the queue; a drain removes it from the queue before it runs.
 */
export function runInTurn<T>(
  session: Session,
  gatedCall: GatedCall,
  gated: GatedWork,
  run: () => Promise<T>,
): Promise<T> {
  gated.fence.pass(gatedCall.fence);
  const { signal } = gatedCall.controller;
  const result = session.queue.take(signal).then(
    async (finish) => {
      try {
        await session.requireAlive();
        if (signal.aborted) throw notRunError(gatedCall, gated);
        return await run();
      } finally {
        finish();
      }
    },
    async () => {
      await session.requireAlive();
      throw notRunError(gatedCall, gated);
    },
  );
  gated.track(result, gatedCall);
  return result;
}

/** Its lease was lost, its caller has disconnected, or the container stops. */
function notRunError({ fence, controller }: GatedCall, gated: GatedWork): BerthError {
  gated.fence.pass(fence);
  return abortReason(controller.signal);
}

export async function runCommand(
  call: AgentSessionExecCall,
  { session, folder, signal }: { session: Session; folder: SessionFolder; signal: AbortSignal },
): Promise<Finished> {
  const startedAt = performance.now();
  const output = new Output(call.maxOutputBytes);
  const stdin = toInput(call);
  const pipes = openPipes(folder.for(session.sandboxEnv.user), stdin, (stream, bytes) =>
    output.take(stream, bytes),
  );
  const timeoutMs = call.timeoutMs ?? session.commandTimeoutMs;
  const running = session.shell.run(call.command, pipes.names);
  const end = await waitForEnd(session, running, { timeoutMs, signal });
  const takeOutput = () => {
    const { stdout, stderr, truncated } = output;
    output.release();
    return { stdout: stdout.text(call.encoding), stderr: stderr.text(call.encoding), truncated };
  };
  pipes.close();
  if (typeof end === "string") {
    const termination = await session.end(end);
    if (!(await resolvesWithin(pipes.ended, limits.execDrainMs))) pipes.stop();
    throw commandInterrupted(session.id, termination, takeOutput());
  }
  session.setCwd(end);
  if (!(await pipes.drain(limits.execDrainMs))) session.hold(pipes);
  return {
    ...{ exitCode: end.exitCode, signal: null, timedOut: false },
    ...takeOutput(),
    leftovers: 0,
    durationMs: Math.round((performance.now() - startedAt) * 100) / 100,
  };
}

/** Resolves with how the command ended, or with the reason why the session must end. */
export function waitForEnd(
  session: Session,
  running: Promise<CommandEnd | "unresponsive">,
  { timeoutMs, signal }: { timeoutMs: number; signal: AbortSignal },
): Promise<CommandEnd | Reason> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => finish("timed_out"), timeoutMs);
    const onAbort = () => finish(endReason(signal));
    signal.addEventListener("abort", onAbort);
    if (signal.aborted) onAbort();
    running.then((end) => finish(end === "unresponsive" ? "ended" : end));
    session.over.then(({ reason }) => finish(reason));
    function finish(end: CommandEnd | Reason): void {
      clearTimeout(timer);
      signal.removeEventListener("abort", onAbort);
      resolve(end);
    }
  });
}

export function endReason({ reason }: AbortSignal): Reason {
  return reason instanceof BerthError && reason.facts.reason === "lease_lost"
    ? "lease_lost"
    : "ended";
}

export function openPipes(...options: ConstructorParameters<typeof Pipes>): Pipes {
  try {
    return new Pipes(...options);
  } catch (error) {
    console.error("the pipes of a command:", error);
    throw new BerthError(
      "unavailable",
      "The pipes of the command could not be created. It was not run.",
      { hint: "The container may be out of memory or descriptors." },
    );
  }
}

function toInput({ stdin, encoding }: AgentSessionExecCall): Uint8Array | undefined {
  return stdin === undefined || stdin === "" ? undefined : Buffer.from(stdin, encoding);
}
