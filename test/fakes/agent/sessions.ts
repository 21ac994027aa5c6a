/**
 * The sessions of one agent in memory, and its routes below /v1/sessions.
 */

import { BerthError } from "../../../src/protocol/errors.ts";
import type {
  AgentProcessCall,
  AgentSessionCall,
  AgentSessionExecCall,
} from "../../../src/protocol/internal/agent.ts";
import { limits } from "../../../src/protocol/limits.ts";
import type { FakeAgent } from "./agent.ts";
import { type AgentCall, noRoute } from "./call.ts";
import { FakeSession, type SessionEnd, terminatedError } from "./session.ts";

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
    if (this.count >= limits.sessionsMax) {
      throw new BerthError("too_many", `at most ${limits.sessionsMax} sessions`);
    }
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
