/**
 * Owns one session in memory: its shell, its commands one after the other, and its end.
 */

import { BerthError } from "../../../src/protocol/errors.ts";
import type {
  AgentSessionCall,
  AgentSessionExecCall,
} from "../../../src/protocol/internal/agent.ts";
import { limits } from "../../../src/protocol/limits.ts";
import type { Session } from "../../../src/protocol/session.ts";
import type { FakeAgent } from "./agent.ts";
import type { Answer } from "./answers.ts";
import { environment, type Outcome, outcomeOf } from "./command.ts";
import { answered, type Written } from "./exec.ts";
import { Exit, type Io, Shell } from "./shell.ts";
import { type Stop, Stopped } from "./stop.ts";

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

  exec(call: AgentSessionExecCall, fence: number): Promise<Answer> {
    const run = () => this.#queued(call, fence);
    return call.keep === true ? this.#agent.answers.once(call.execId, run) : run();
  }

  /** What runs in it is cut off. */
  end(end: SessionEnd, why = "SIGKILL"): void {
    if (this.#ended !== undefined) return;
    this.#ended = end;
    this.#running?.now(why);
    this.#onEnd(end);
  }

  async #queued(call: AgentSessionExecCall, fence: number): Promise<Answer> {
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
      if (this.#ended !== undefined) throw terminated(this.id, this.#ended);
      // It may have waited for longer than its lease lasted.
      this.#agent.pass(fence);
      const timeoutMs = call.timeoutMs ?? this.#call.commandTimeoutMs;
      return await answered(
        this.#agent,
        call,
        timeoutMs,
        (io, stop) => this.#run(call.command, io, stop),
        (written) => this.#ended && cutOff(this.id, this.#ended, written),
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

export function terminated(id: string, end: SessionEnd, written?: Written): BerthError {
  return new BerthError("session_terminated", `the session ${id} has ended`, {
    hint: "create it anew",
    facts: { ...end, timedOut: end.reason === "timed_out", ...written },
  });
}

/** To the command that ran then. */
function cutOff(id: string, end: SessionEnd, written: Written): BerthError {
  const { facts, message } = terminated(id, end, written);
  if (end.reason !== "lease_lost") return terminated(id, end, written);
  return new BerthError("operation_interrupted", message, { facts: { admitted: true, ...facts } });
}
