/**
 * The terminals of one agent in memory, and its routes below /v1/terminals.
 */

import { BerthError } from "../../../src/protocol/errors.ts";
import type { AgentTerminalCall } from "../../../src/protocol/internal/agent.ts";
import { limits } from "../../../src/protocol/limits.ts";
import type { TerminalSize } from "../../../src/protocol/terminal.ts";
import type { FakeAgent } from "./agent.ts";
import { type AgentCall, noRoute } from "./call.ts";
import { FakeTerminal } from "./terminal.ts";
import { connect } from "./terminal-socket.ts";

export class Terminals {
  readonly #agent: FakeAgent;
  readonly #all = new Map<string, FakeTerminal>();
  readonly #asked = new Set<string>();

  constructor(agent: FakeAgent) {
    this.#agent = agent;
  }

  get count(): number {
    return this.#all.size;
  }

  get attached(): number {
    return [...this.#all.values()].reduce((sum, { viewers }) => sum + viewers.size, 0);
  }

  cut(): void {
    for (const terminal of this.#all.values()) terminal.end("cut");
  }

  async answer(call: AgentCall): Promise<Response> {
    const [id, verb] = call.rest;
    if (id === undefined) return call.method === "POST" ? this.#create(call) : this.#list(call);
    const terminal = this.#of(id);
    switch (`${call.method} ${verb ?? ""}`) {
      case "GET ":
        return call.json(terminal.record);
      case "PATCH ":
        terminal.resize(await call.body<TerminalSize>());
        return call.json(terminal.record);
      case "DELETE ":
        this.#asked.add(id);
        terminal.end();
        await terminal.finished;
        return call.json({ id, ended: true });
      case "GET screen":
        return call.json(terminal.screen);
      case "GET connect":
        return connect(this.#agent, terminal, call.request, call.headers);
    }
    throw noRoute();
  }

  async #create(call: AgentCall): Promise<Response> {
    const terminalCall = await call.body<AgentTerminalCall>();
    call.admitFence();
    const known = this.#all.get(terminalCall.id);
    if (known !== undefined) return call.json(known.record);
    if (this.count >= limits.terminalsMax) {
      throw new BerthError("too_many", `at most ${limits.terminalsMax} terminals`);
    }
    const terminal = new FakeTerminal(this.#agent, terminalCall);
    this.#all.set(terminalCall.id, terminal);
    if (terminalCall.endsWithLease) this.#agent.trackUntilLeaseEnds(terminalCall.id, terminal);
    void terminal.finished.then(({ exitCode, signal, cut }) => {
      this.#all.delete(terminalCall.id);
      const reasonByCut = cut === "fenced" ? "lease_lost" : "exited";
      const reason = this.#asked.delete(terminalCall.id) ? "ended" : reasonByCut;
      if (this.#agent.ended) return;
      this.#agent.recordExit({ kind: "terminal", id: terminalCall.id, exitCode, signal, reason });
    });
    return call.json(terminal.record, 201);
  }

  #list(call: AgentCall): Response {
    const terminals = [...this.#all.values()].map(({ record }) => record);
    return call.json({ terminals, nextCursor: null });
  }

  #of(id: string): FakeTerminal {
    const terminal = this.#all.get(id);
    if (terminal !== undefined) return terminal;
    throw new BerthError("not_found", `there is no terminal ${id}`);
  }
}
