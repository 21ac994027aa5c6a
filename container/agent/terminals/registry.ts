/**
 * Owns which terminals there are: one of each id, made once however many ask at the same time.
 * Does not own one terminal's course (terminal.ts).
 *
 * A terminal is listed from before its PTY is opened until after that is closed.
 */

import { BerthError } from "../../../src/protocol/error-codes.ts";
import type { AgentTerminalCall } from "../../../src/protocol/internal/agent.ts";
import { limits } from "../../../src/protocol/limits.ts";
import type { Endings } from "../exit-events.ts";
import type { Begun, GatedWork } from "../server/gated-work.ts";
import { type Around, Terminal } from "./terminal.ts";

type Entry = { ready: Promise<Terminal>; terminal: Terminal | undefined };

export class Roster {
  readonly #around: Around;
  readonly #gated: GatedWork;
  readonly #endings: Endings;
  readonly #entries = new Map<string, Entry>();

  constructor(around: Around, gated: GatedWork, endings: Endings) {
    this.#around = around;
    this.#gated = gated;
    this.#endings = endings;
  }

  get count(): number {
    return this.#entries.size;
  }

  get terminals(): Terminal[] {
    return [...this.#entries.values()].flatMap(({ terminal }) => terminal ?? []);
  }

  /** Also those that are being made: a PTY that is open is always told. */
  async all(): Promise<Terminal[]> {
    await Promise.allSettled([...this.#entries.values()].map(({ ready }) => ready));
    return this.terminals;
  }

  /** One that is about to end is waited for: then its id is free. */
  async open(
    call: AgentTerminalCall,
    begun: Begun,
  ): Promise<{ terminal: Terminal; made: boolean }> {
    for (;;) {
      this.#gated.fence.pass(begun.fence);
      const entry = this.#entries.get(call.id);
      if (entry === undefined) return { terminal: await this.#make(call, begun), made: true };
      const terminal = await entry.ready;
      if (!terminal.isEnding) return { terminal, made: false };
      await terminal.over;
    }
  }

  /** Waits for one that is being made. */
  async find(id: string): Promise<Terminal> {
    const terminal = await this.#entries.get(id)?.ready.catch(() => undefined);
    if (terminal !== undefined) return terminal;
    throw new BerthError("not_found", `there is no terminal ${id}`, {
      hint: "make one with POST /v1/sandboxes/:id/terminals",
    });
  }

  async endAll(): Promise<void> {
    const entries = [...this.#entries.values()];
    const ends = entries.map(async ({ ready }) => (await ready).stop("ended"));
    await Promise.allSettled(ends);
  }

  /** Synchronous until the program is born: nobody comes between the look at the list and the entry in it. */
  #make(call: AgentTerminalCall, begun: Begun): Promise<Terminal> {
    if (this.#entries.size >= limits.terminalsMax) {
      throw new BerthError("too_many", `${limits.terminalsMax} terminals are open already`, {
        hint: "end one of them",
        facts: { limit: limits.terminalsMax },
      });
    }
    const { promise: ready, resolve, reject } = Promise.withResolvers<Terminal>();
    const entry: Entry = { ready, terminal: undefined };
    this.#entries.set(call.id, entry);
    this.#start(call, begun, entry).then(resolve, reject);
    const { signal } = begun.gone;
    const over = call.endsWithLease ? ready.then((terminal) => endOf(terminal, signal)) : ready;
    this.#gated.track(
      over.catch(() => {}),
      begun,
    );
    return ready;
  }

  async #start(call: AgentTerminalCall, begun: Begun, entry: Entry): Promise<Terminal> {
    let terminal: Terminal;
    try {
      terminal = await Terminal.start(call, this.#around);
    } catch (error) {
      this.#entries.delete(call.id);
      throw error;
    }
    entry.terminal = terminal;
    terminal.over.then(() => this.#forget(terminal));
    const { signal } = begun.gone;
    if (!signal.aborted) return terminal;
    await terminal.stop("lease_lost");
    throw signal.reason;
  }

  #forget(terminal: Terminal): void {
    this.#entries.delete(terminal.id);
    const { exitCode, signal } = terminal.exit ?? { exitCode: null, signal: null };
    this.#endings.add({
      kind: "terminal",
      id: terminal.id,
      exitCode,
      signal,
      reason: terminal.reason,
    });
  }
}

/** Gated work for as long as it is there: it ends by itself, or with the lease under which it was opened. */
async function endOf(terminal: Terminal, gone: AbortSignal): Promise<void> {
  const end = () => terminal.stop("lease_lost");
  gone.addEventListener("abort", end);
  if (gone.aborted) end();
  await terminal.over;
  gone.removeEventListener("abort", end);
}
