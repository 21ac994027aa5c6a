/**
 * Stops a command from outside, with the name of a signal or the reason why it is cut off.
 */

import { BerthError } from "../../../src/protocol/errors.ts";

/** Thrown inside a command that is stopped. */
export class Stopped extends Error {
  readonly why: string;

  constructor(why: string) {
    super(why);
    this.why = why;
  }
}

export class Stop {
  #why: string | undefined;
  readonly #waiting = new Set<(error: Stopped) => void>();

  get why(): string | undefined {
    return this.#why;
  }

  /** The first one counts. */
  now(why: string): void {
    if (this.#why !== undefined) return;
    this.#why = why;
    for (const reject of this.#waiting) reject(new Stopped(why));
    this.#waiting.clear();
  }

  after(ms: number, why: string): () => void {
    const timer = setTimeout(() => this.now(why), ms);
    return () => clearTimeout(timer);
  }

  /** Waits, unless it is stopped first. `begin` answers what undoes the wait. */
  wait<T>(begin: (done: (value: T) => void) => () => void): Promise<T> {
    return new Promise((resolve, reject) => {
      if (this.#why !== undefined) return reject(new Stopped(this.#why));
      const stopped = (error: Stopped) => {
        undo();
        reject(error);
      };
      this.#waiting.add(stopped);
      const undo = begin((value) => {
        this.#waiting.delete(stopped);
        resolve(value);
      });
    });
  }

  sleep(ms: number): Promise<void> {
    return this.wait((done) => {
      const timer = setTimeout(done, ms);
      return () => clearTimeout(timer);
    });
  }
}

export function leaseLost(): BerthError {
  return new BerthError("operation_interrupted", "The lease of this work was lost.", {
    facts: { admitted: true, reason: "lease_lost" },
  });
}
