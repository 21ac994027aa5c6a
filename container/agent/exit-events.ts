/**
 * Owns the list of what ended in this life: processes, sessions, terminals, in order, the newest ones.
 * Does not own events: the object asks for this list and tells of each once.
 */
import type { AgentEnding } from "../../src/protocol/internal/agent.ts";

const keptMax = 1000;

export class Endings {
  readonly #kept: AgentEnding[] = [];
  #newest = 0;

  add(ending: Omit<AgentEnding, "n" | "at">): void {
    this.#newest++;
    this.#kept.push({ n: this.#newest, at: new Date().toISOString(), ...ending });
    if (this.#kept.length > keptMax) this.#kept.shift();
  }

  after(n: number): AgentEnding[] {
    return this.#kept.filter((ending) => ending.n > n);
  }
}
