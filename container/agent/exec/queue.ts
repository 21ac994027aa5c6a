/** Gives turns one at a time, in the order of arrival, to a bounded number of waiters. */
import { BerthError } from "../../../src/protocol/error-codes.ts";
import { tooMany } from "../server/fields.ts";

/** How many may wait; one more gets the error "<max> <tooMany>." */
export type QueueOptions = { max: number; tooMany: string; hint: string };

export class TurnQueue {
  readonly #options: QueueOptions;
  readonly #waiters: (() => void)[] = [];
  #isTaken = false;

  constructor(options: QueueOptions) {
    this.#options = options;
  }

  get waiting(): number {
    return this.#waiters.length;
  }

  get isTaken(): boolean {
    return this.#isTaken;
  }

  /**
   * Resolves with the function that ends the turn. Throws if too many wait already. If `signal` aborts before the turn,
   * it leaves the queue and rejects.
   */
  take(signal: AbortSignal): Promise<() => void> {
    if (signal.aborted) return Promise.reject(abortReason(signal));
    if (!this.#isTaken) {
      this.#isTaken = true;
      return Promise.resolve(this.#createTurn());
    }
    const { max, tooMany: what, hint } = this.#options;
    if (this.#waiters.length >= max) throw tooMany(max, what, hint);
    return new Promise((resolve, reject) => {
      const leave = () => {
        this.#waiters.splice(this.#waiters.indexOf(begin), 1);
        reject(abortReason(signal));
      };
      const begin = () => {
        signal.removeEventListener("abort", leave);
        resolve(this.#createTurn());
      };
      this.#waiters.push(begin);
      signal.addEventListener("abort", leave, { once: true });
    });
  }

  /** A turn passes to the next waiter directly, so that a newcomer cannot overtake. */
  #createTurn(): () => void {
    let isOver = false;
    return () => {
      if (isOver) return;
      isOver = true;
      const next = this.#waiters.shift();
      if (next === undefined) this.#isTaken = false;
      else next();
    };
  }
}

export function abortReason({ reason }: AbortSignal): BerthError {
  if (reason instanceof BerthError) return reason;
  return new BerthError("operation_interrupted", "The caller disconnected before its turn.", {
    facts: { admitted: false },
  });
}
