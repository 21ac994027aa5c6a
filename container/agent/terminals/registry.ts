/** Registers the terminals of one sandbox, each created once, from before its PTY opens until after it is closed. */
import { BerthError } from "../../../src/protocol/error-codes.ts";
import type { AgentTerminalCall } from "../../../src/protocol/internal/agent.ts";
import { limits } from "../../../src/protocol/limits.ts";
import type { ExitEvents } from "../activity.ts";
import { endOnAbort } from "../server/abort.ts";
import { tooMany } from "../server/fields.ts";
import type { GatedCall, GatedWork } from "../server/gated-work.ts";
import { Terminal, type TerminalDeps } from "./terminal.ts";

type Entry = { ready: Promise<Terminal>; terminal: Terminal | undefined };

export class TerminalRegistry {
  readonly #deps: TerminalDeps;
  readonly #gated: GatedWork;
  readonly #exitEvents: ExitEvents;
  readonly #entries = new Map<string, Entry>();

  constructor(deps: TerminalDeps, gated: GatedWork, exitEvents: ExitEvents) {
    this.#deps = deps;
    this.#gated = gated;
    this.#exitEvents = exitEvents;
  }

  get count(): number {
    return this.#entries.size;
  }

  get terminals(): Terminal[] {
    return [...this.#entries.values()].flatMap(({ terminal }) => terminal ?? []);
  }

  /** Waits for terminals that are starting, so that every open PTY is listed. */
  async list(): Promise<Terminal[]> {
    await Promise.allSettled([...this.#entries.values()].map(({ ready }) => ready));
    return this.terminals;
  }

  /** Waits for a terminal of this id that is about to end: then its id is free. */
  async open(
    call: AgentTerminalCall,
    gatedCall: GatedCall,
  ): Promise<{ terminal: Terminal; isNew: boolean }> {
    for (;;) {
      this.#gated.fence.pass(gatedCall.fence);
      const entry = this.#entries.get(call.id);
      if (entry === undefined)
        return { terminal: await this.#create(call, gatedCall), isNew: true };
      const terminal = await entry.ready;
      if (!terminal.isEnding) return { terminal, isNew: false };
      await terminal.over;
    }
  }

  /** Waits for a terminal that is starting. */
  async find(id: string): Promise<Terminal> {
    const terminal = await this.#entries.get(id)?.ready.catch(() => undefined);
    if (terminal !== undefined) return terminal;
    throw new BerthError("not_found", `There is no terminal ${id}.`, {
      hint: "Create it with POST /v1/sandboxes/:id/terminals.",
    });
  }

  async endAll(): Promise<void> {
    const entries = [...this.#entries.values()];
    const ends = entries.map(async ({ ready }) => (await ready).stop("ended"));
    await Promise.allSettled(ends);
  }

  /** Synchronous until the program is started: no other call comes between the check and the entry. */
  #create(call: AgentTerminalCall, gatedCall: GatedCall): Promise<Terminal> {
    if (this.#entries.size >= limits.terminalsMax) {
      throw tooMany(limits.terminalsMax, "terminals are open already", "End one of them.");
    }
    const { signal } = gatedCall.controller;
    const started = Terminal.start(call, this.#deps);
    const ready = started.then(async (terminal) => {
      if (!signal.aborted) return terminal;
      await terminal.stop("lease_lost");
      throw signal.reason;
    });
    const entry: Entry = { ready, terminal: undefined };
    this.#entries.set(call.id, entry);
    started.then(
      (terminal) => {
        entry.terminal = terminal;
        terminal.over.then(() => this.#remove(terminal));
      },
      () => this.#entries.delete(call.id),
    );
    const endWithLease = (terminal: Terminal) =>
      endOnAbort(terminal.over, signal, () => terminal.stop("lease_lost"));
    this.#gated.track(call.endsWithLease ? ready.then(endWithLease) : ready, gatedCall);
    return ready;
  }

  #remove(terminal: Terminal): void {
    this.#entries.delete(terminal.id);
    const { id, reason } = terminal;
    const { exitCode = null, signal = null } = terminal.exit ?? {};
    this.#exitEvents.add({ kind: "terminal", id, exitCode, signal, reason });
  }
}
