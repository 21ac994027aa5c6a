/**
 * One session in memory: its shell, its commands one after the other, and its end.
 */

import { BerthError } from "../../../src/protocol/errors.ts";
import type {
  AgentSessionCall,
  AgentSessionExecCall,
} from "../../../src/protocol/internal/agent.ts";
import { limits } from "../../../src/protocol/limits.ts";
import type { Session } from "../../../src/protocol/session.ts";
import type { FakeAgent } from "./agent.ts";
import { environment, type Outcome, outcomeOf } from "./command.ts";
import { type CapturedOutput, runToAnswer } from "./exec.ts";
import { Exit, type Io, Shell } from "./shell.ts";
import { type Stop, Stopped } from "./stop.ts";
import type { CommandAnswer } from "./stored-results.ts";

export type Reason = "exited" | "timed_out" | "ended" | "lease_lost";
export type SessionEnd = { reason: Reason; exitCode: number | null; signal: string | null };

export class FakeSession {
  readonly id: string;
  readonly shell: Shell;
  readonly #agent: FakeAgent;
  readonly #call: AgentSessionCall;
  readonly #createdAt = new Date().toISOString();
  readonly #onEnd: (end: SessionEnd) => void;
  #turn: Promise<unknown> = Promise.resolve();
  #waiting = 0;
  #running: Stop | undefined;
  #ended: SessionEnd | undefined;

  constructor(agent: FakeAgent, call: AgentSessionCall, onEnd: (end: SessionEnd) => void) {
    this.#agent = agent;
    this.id = call.id;
    this.#call = call;
    this.#onEnd = onEnd;
    this.shell = new Shell(agent, agent.folder(call.cwd), environment(agent, call.env));
  }

  get record(): Session {
    return {
      id: this.id,
      state: this.#running === undefined ? "ready" : "busy",
      pid: this.shell.pid,
      cwd: this.shell.cwd,
      createdAt: this.#createdAt,
      commandTimeoutMs: this.#call.commandTimeoutMs,
      waiting: this.#waiting,
      incarnation: this.#agent.incarnation,
    };
  }

  exec(call: AgentSessionExecCall, fence: number): Promise<CommandAnswer> {
    const run = () => this.#queued(call, fence);
    return call.keep === true ? this.#agent.storedResults.runOnce(call.execId, run) : run();
  }

  /** Ends the session; its running command is cut off. */
  end(end: SessionEnd, why = "SIGKILL"): void {
    if (this.#ended !== undefined) return;
    this.#ended = end;
    this.#running?.now(why);
    this.#onEnd(end);
  }

  async #queued(call: AgentSessionExecCall, fence: number): Promise<CommandAnswer> {
    if (this.#waiting >= limits.sessionWaitersMax) {
      throw new BerthError("too_many", `at most ${limits.sessionWaitersMax} commands wait`);
    }
    this.#waiting++;
    const before = this.#turn;
    let done = () => {};
    this.#turn = new Promise<void>((resolve) => {
      done = resolve;
    });
    await before;
    this.#waiting--;
    try {
      if (this.#ended !== undefined) throw terminatedError(this.id, this.#ended);
      // The command may have waited for longer than its lease lasted.
      this.#agent.admitFence(fence);
      const timeoutMs = call.timeoutMs ?? this.#call.commandTimeoutMs;
      return await runToAnswer(
        this.#agent,
        call,
        timeoutMs,
        (io, stop) => this.#run(call.command, io, stop),
        (written) => this.#ended && cutOffError(this.id, this.#ended, written),
      );
    } finally {
      done();
    }
  }

  async #run(command: string, io: Io, stop: Stop): Promise<Outcome> {
    this.#running = stop;
    let shellEnded = false;
    const outcome = await outcomeOf(async () => {
      try {
        return await this.shell.run(command, io, stop);
      } catch (error) {
        shellEnded = error instanceof Exit || error instanceof Stopped;
        throw error;
      }
    });
    this.#running = undefined;
    if (shellEnded) {
      const { exitCode, signal, timedOut, cut } = outcome;
      const reason = timedOut ? "timed_out" : cut === undefined ? "exited" : "lease_lost";
      this.end({ reason, exitCode, signal });
    }
    return outcome;
  }
}

export function terminatedError(id: string, end: SessionEnd, written?: CapturedOutput): BerthError {
  return new BerthError("session_terminated", `the session ${id} has ended`, {
    hint: "create it again",
    facts: { ...end, timedOut: end.reason === "timed_out", ...written },
  });
}

/** The error for the command that was running. */
function cutOffError(id: string, end: SessionEnd, written: CapturedOutput): BerthError {
  const { facts, message } = terminatedError(id, end, written);
  if (end.reason !== "lease_lost") return terminatedError(id, end, written);
  return new BerthError("operation_interrupted", message, { facts: { admitted: true, ...facts } });
}
