/**
 * Owns who waits for a change: of anything, or of the turn of one ticket. Wakes; decides nothing.
 */
import type { Place } from "./host.ts";

export class Watchers {
  readonly #host: Pick<Place, "timer">;
  readonly #all = new Set<() => void>();
  readonly #byTicket = new Map<string, Set<() => void>>();

  constructor(host: Pick<Place, "timer">) {
    this.#host = host;
  }

  /** False when nothing changed in time. */
  change(waitMs: number): Promise<boolean> {
    return this.#wait(this.#all, waitMs);
  }

  /** False when its turn did not come in time. */
  async turn(ticket: string, waitMs: number): Promise<boolean> {
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

  wakeEveryTurn(): void {
    for (const ticket of [...this.#byTicket.keys()]) this.wakeTurn(ticket);
  }

  #wait(among: Set<() => void>, waitMs: number): Promise<boolean> {
    if (waitMs <= 0) return Promise.resolve(false);
    return new Promise((resolve) => {
      const finish = (changed: boolean) => {
        cancel();
        among.delete(woken);
        resolve(changed);
      };
      const woken = () => finish(true);
      const cancel = this.#host.timer(waitMs, () => finish(false));
      among.add(woken);
    });
  }
}
