/** Wakes calls that wait for a change of the object or for the turn of a lease ticket. */
import type { ObjectHost } from "./host.ts";

export class Waiters {
  readonly #host: Pick<ObjectHost, "setTimer">;
  readonly #all = new Set<() => void>();
  readonly #byTicket = new Map<string, Set<() => void>>();

  constructor(host: Pick<ObjectHost, "setTimer">) {
    this.#host = host;
  }

  /** False if nothing changed in time. */
  waitForChange(waitMs: number): Promise<boolean> {
    return this.#wait(this.#all, waitMs);
  }

  /** False if the ticket's turn did not come in time. */
  async waitForTurn(ticket: string, waitMs: number): Promise<boolean> {
    const waiting = this.#byTicket.get(ticket) ?? new Set();
    this.#byTicket.set(ticket, waiting);
    try {
      return await this.#wait(waiting, waitMs);
    } finally {
      if (waiting.size === 0) this.#byTicket.delete(ticket);
    }
  }

  wakeAll(): void {
    for (const wake of [...this.#all]) wake();
  }

  wakeTurn(ticket: string): void {
    for (const wake of [...(this.#byTicket.get(ticket) ?? [])]) wake();
  }

  wakeAllTurns(): void {
    for (const ticket of [...this.#byTicket.keys()]) this.wakeTurn(ticket);
  }

  #wait(waiting: Set<() => void>, waitMs: number): Promise<boolean> {
    if (waitMs <= 0) return Promise.resolve(false);
    return new Promise((resolve) => {
      const finish = (hasChanged: boolean) => {
        cancel();
        waiting.delete(wake);
        resolve(hasChanged);
      };
      const wake = () => finish(true);
      const cancel = this.#host.setTimer(waitMs, () => finish(false));
      waiting.add(wake);
    });
  }
}
