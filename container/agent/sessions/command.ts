/**
 * Owns one command in a session, from its turn to its answer. One that is cut off takes the session along.
 * Does not own the answer's way to the caller (exec.ts of the agent).
 */

import { BerthError } from "../../../src/protocol/error-codes.ts";
import type { AgentSessionExecCall } from "../../../src/protocol/internal/agent.ts";
import { limits } from "../../../src/protocol/limits.ts";
import type { Finished } from "../exec/command.ts";
import { Output } from "../exec/output.ts";
import { whyGone } from "../exec/queue.ts";
import type { Begun, GatedWork } from "../server/gated-work.ts";
import { within } from "../server/timeout.ts";
import type { End } from "./ends.ts";
import type { Folder } from "./folder.ts";
import { Pipes } from "./pipes.ts";
import type { Session } from "./session.ts";
import { cutOff, type Reason } from "./termination.ts";

/**
 * Throws at once where the fence is too low or too many wait. Gated work from there on: a fence that rises beside who
 * waits counts him, and he keeps his turn; a drain takes him out of the line, unrun.
 */
export function runInTurn<T>(
  session: Session,
  begun: Begun,
  gated: GatedWork,
  work: () => Promise<T>,
): Promise<T> {
  gated.fence.pass(begun.fence);
  const { signal } = begun.gone;
  const done = session.turns.take(signal).then(
    async (finish) => {
      try {
        await session.demandAlive();
        if (signal.aborted) throw whyUnrun(begun, gated);
        return await work();
      } finally {
        finish();
      }
    },
    async () => {
      await session.demandAlive();
      throw whyUnrun(begun, gated);
    },
  );
  gated.track(
    done.then(
      () => {},
      () => {},
    ),
    begun,
  );
  return done;
}

/** Its lease was lost, its caller has left, or all of it ends. */
function whyUnrun({ fence, gone }: Begun, gated: GatedWork): BerthError {
  gated.fence.pass(fence);
  return whyGone(gone.signal);
}

export async function runCommand(
  call: AgentSessionExecCall,
  { session, folder, gone }: { session: Session; folder: Folder; gone: AbortSignal },
): Promise<Finished> {
  const began = performance.now();
  const output = new Output(call.maxOutputBytes);
  const stdin = inputOf(call);
  const pipes = openPipes(folder, stdin, (stream, bytes) => output.take(stream, bytes));
  const timeoutMs = call.timeoutMs ?? session.commandTimeoutMs;
  const end = await endOrCut(session, session.shell.run(call.command, pipes.names), {
    timeoutMs,
    gone,
  });
  const written = () => {
    const { stdout, stderr, truncated } = output;
    output.release();
    return { stdout: stdout.text(call.encoding), stderr: stderr.text(call.encoding), truncated };
  };
  pipes.close();
  if (typeof end === "string") {
    const termination = await session.end(end);
    if (!(await within(pipes.ended, limits.execDrainMs))) pipes.stop();
    throw cutOff(session.id, termination, written());
  }
  session.stand(end);
  if (!(await pipes.drain(limits.execDrainMs))) session.hold(pipes);
  return {
    ...{ exitCode: end.exitCode, signal: null, timedOut: false },
    ...written(),
    leftovers: 0,
    durationMs: Math.round((performance.now() - began) * 100) / 100,
  };
}

/** Why the session must end; else how the command did. */
export function endOrCut(
  session: Session,
  running: Promise<End | "deaf">,
  { timeoutMs, gone }: { timeoutMs: number; gone: AbortSignal },
): Promise<End | Reason> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => done("timed_out"), timeoutMs);
    const onGone = () => done(reasonOf(gone));
    gone.addEventListener("abort", onGone);
    if (gone.aborted) onGone();
    running.then((end) => done(end === "deaf" ? "ended" : end));
    session.over.then(({ reason }) => done(reason));
    function done(end: End | Reason): void {
      clearTimeout(timer);
      gone.removeEventListener("abort", onGone);
      resolve(end);
    }
  });
}

export function reasonOf({ reason }: AbortSignal): Reason {
  return reason instanceof BerthError && reason.facts.reason === "lease_lost"
    ? "lease_lost"
    : "ended";
}

export function openPipes(...made: ConstructorParameters<typeof Pipes>): Pipes {
  try {
    return new Pipes(...made);
  } catch (error) {
    console.error("the pipes of a command:", error);
    throw new BerthError(
      "unavailable",
      "the pipes of the command could not be made; it was not run",
      {
        hint: "the container may be out of memory, or of descriptors",
      },
    );
  }
}

function inputOf({ stdin, encoding }: AgentSessionExecCall): Uint8Array | undefined {
  return stdin === undefined || stdin === "" ? undefined : Buffer.from(stdin, encoding);
}
