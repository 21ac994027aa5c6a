/**
 * The sessions of one agent in memory, each with its shell and its commands one after the other, and the routes below
 * /v1/sessions.
 */
import { BerthError } from "../../../src/protocol/errors.ts";
import type {
  AgentProcessCall,
  AgentSessionCall,
  AgentSessionExecCall,
} from "../../../src/protocol/internal/agent.ts";
import { limits } from "../../../src/protocol/limits.ts";
import type { Session } from "../../../src/protocol/session.ts";
import type { FakeAgent } from "./agent.ts";
import { type AgentCall, noRoute } from "./call.ts";
import {
  type CapturedOutput,
  type CommandAnswer,
  type Outcome,
  openShell,
  outcomeOf,
  requireRoom,
  runToAnswer,
} from "./command.ts";
import { Exit, type Io, type Shell } from "./shell.ts";
import { Queues, type Stop, Stopped } from "./waiting.ts";

export class Sessions {
  readonly #agent: FakeAgent;
  readonly #all = new Map<string, FakeSession>();
  readonly #ended = new Map<string, SessionEnd>();

  constructor(agent: FakeAgent) {
    this.#agent = agent;
  }

  get count(): number {
    return this.#all.size;
  }

  /** The container is gone: nothing is reported. */
  cut(): void {
    this.#all.clear();
  }

  cwdOf(id: string): string {
    return this.#of(id).shell.cwd;
  }

  async answer(call: AgentCall): Promise<Response> {
    const [id, verb] = call.rest;
    if (id === undefined) return call.method === "POST" ? this.#create(call) : this.#list(call);
    switch (`${call.method} ${verb ?? ""}`) {
      case "GET ":
        return call.json(this.#of(id).record);
      case "DELETE ":
        call.admitFence();
        return call.json(this.#end(id));
      case "POST exec": {
        const sessionCall = await call.body<AgentSessionExecCall>();
        const fence = call.admitFence();
        return call.text((await this.#of(id).exec(sessionCall, fence)).body);
      }
      case "POST processes": {
        const sessionCall = await call.body<AgentProcessCall>();
        return this.#startProcess(call, this.#of(id), sessionCall);
      }
    }
    throw noRoute();
  }

  async #create(call: AgentCall): Promise<Response> {
    const sessionCall = await call.body<AgentSessionCall>();
    call.admitFence();
    const known = this.#all.get(sessionCall.id);
    if (known !== undefined) return call.json(known.record);
    requireRoom(this.count, limits.sessionsMax, "sessions");
    const session = new FakeSession(this.#agent, sessionCall, (end) =>
      this.#onEnd(sessionCall.id, end),
    );
    this.#ended.delete(sessionCall.id);
    this.#all.set(sessionCall.id, session);
    return call.json(session.record, 201);
  }

  #list(call: AgentCall): Response {
    const sessions = [...this.#all.values()].map(({ record }) => record);
    return call.json({ sessions, nextCursor: null });
  }

  #end(id: string) {
    if (!this.#ended.has(id)) {
      this.#of(id).end({ reason: "ended", exitCode: null, signal: "SIGKILL" });
    }
    return { id, ended: true };
  }

  async #startProcess(
    call: AgentCall,
    session: FakeSession,
    sessionCall: AgentProcessCall,
  ): Promise<Response> {
    const { shell } = session;
    const from = () => {
      const cwd = sessionCall.cwd === undefined ? undefined : this.#agent.folder(sessionCall.cwd);
      return shell.fork(cwd, sessionCall.env ?? {});
    };
    const { process, isNew } = await this.#agent.processes.start(sessionCall, {
      admit: () => call.admitFence(),
      shellOf: from,
      sessionId: session.id,
    });
    return call.json(process.record, isNew ? 201 : 200);
  }

  #of(id: string): FakeSession {
    const session = this.#all.get(id);
    if (session !== undefined) return session;
    const end = this.#ended.get(id);
    if (end !== undefined) throw terminatedError(id, end);
    throw new BerthError("not_found", `there is no session ${id}`);
  }

  #onEnd(id: string, end: SessionEnd): void {
    this.#all.delete(id);
    this.#ended.set(id, end);
    for (const [oldest] of this.#ended) {
      if (this.#ended.size <= limits.sessionsEndedMax) break;
      this.#ended.delete(oldest);
    }
    if (!this.#agent.ended) this.#agent.recordExit({ kind: "session", id, ...end });
  }
}

type Reason = "exited" | "timed_out" | "ended" | "lease_lost";
type SessionEnd = { reason: Reason; exitCode: number | null; signal: string | null };

class FakeSession {
  readonly id: string;
  readonly shell: Shell;
  readonly #agent: FakeAgent;
  readonly #call: AgentSessionCall;
  readonly #createdAt = new Date().toISOString();
  readonly #onEnd: (end: SessionEnd) => void;
  readonly #queues = new Queues();
  #waiting = 0;
  #running: Stop | undefined;
  #ended: SessionEnd | undefined;

  constructor(agent: FakeAgent, call: AgentSessionCall, onEnd: (end: SessionEnd) => void) {
    this.#agent = agent;
    this.id = call.id;
    this.#call = call;
    this.#onEnd = onEnd;
    this.shell = openShell(agent, call);
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
    requireRoom(this.#waiting, limits.sessionWaitersMax, "commands wait");
    this.#waiting++;
    return this.#queues.run(this.id, () => {
      this.#waiting--;
      if (this.#ended !== undefined) throw terminatedError(this.id, this.#ended);
      // The command may have waited for longer than its lease lasted.
      this.#agent.admitFence(fence);
      return runToAnswer(
        this.#agent,
        call,
        call.timeoutMs ?? this.#call.commandTimeoutMs,
        (io, stop) => this.#run(call.command, io, stop),
        (written) => this.#ended && cutOffError(this.id, this.#ended, written),
      );
    });
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

function terminatedError(id: string, end: SessionEnd, written?: CapturedOutput): BerthError {
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
