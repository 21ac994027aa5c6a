/**
 * Lists the processes, sessions and terminals that ended in this incarnation, newest last, up to a maximum. The object
 * fetches them by cursor and turns each into an event.
 */
import type { AgentEnding } from "../../src/protocol/internal/agent.ts";

const countMax = 1000;

export class ExitEvents {
  readonly #events: AgentEnding[] = [];
  #newest = 0;

  add(event: Omit<AgentEnding, "n" | "at">): void {
    this.#newest++;
    this.#events.push({ n: this.#newest, at: new Date().toISOString(), ...event });
    if (this.#events.length > countMax) this.#events.shift();
  }

  after(n: number): AgentEnding[] {
    return this.#events.filter((event) => event.n > n);
  }
}
