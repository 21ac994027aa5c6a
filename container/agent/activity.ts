/** What the object polls: for how long nothing has kept the sandbox busy, and what ended meanwhile. */
import type { AgentEnding } from "../../src/protocol/internal/agent.ts";

/**
 * Measures for how long there was no running command or process, no attached socket, no large file or archive in transfer.
 * The object decides from it when the sandbox is idle.
 */
export class Activity {
  #busy = 0;
  #idleSince = performance.now();

  /** Returns the function that ends this activity; further calls of it do nothing. */
  begin(): () => void {
    this.#busy++;
    let isEnded = false;
    return () => {
      if (isEnded) return;
      isEnded = true;
      this.#busy--;
      this.#idleSince = performance.now();
    };
  }

  /** 0 while the sandbox is busy. */
  get idleMs(): number {
    return this.#busy > 0 ? 0 : Math.max(1, Math.round(performance.now() - this.#idleSince));
  }
}

const countMax = 1000;

/**
 * Lists the processes, sessions and terminals that ended in this incarnation, newest last, up to a maximum. The object
 * fetches them by cursor and turns each into an event.
 */
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
