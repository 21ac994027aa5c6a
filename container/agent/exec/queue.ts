/**
 * Owns whose turn it is, in a session or under the name of a process: one at a time, in the order in which they came,
 * a bounded number waiting. Does not own what is done in a turn.
 */
import { BerthError } from "../../../src/protocol/error-codes.ts";

/** How many may wait, and what the next one is told. */
export type Line = { max: number; tooMany: string; hint: string };

export class Turns {
  readonly #line: Line;
  readonly #waiting: (() => void)[] = [];
  #isTaken = false;

  constructor(line: Line) {
    this.#line = line;
  }

  get waiting(): number {
    return this.#waiting.length;
  }

  get isTaken(): boolean {
    return this.#isTaken;
  }

  /**
   * The answered function ends the turn. Throws where too many wait already; rejects, and has left the line, when
   * `gone` is aborted before the turn came.
   */
  take(gone: AbortSignal): Promise<() => void> {
    if (gone.aborted) return Promise.reject(whyGone(gone));
    if (!this.#isTaken) {
      this.#isTaken = true;
      return Promise.resolve(this.#turn());
    }
    if (this.#waiting.length >= this.#line.max) throw tooMany(this.#line);
    return new Promise((resolve, reject) => {
      const leave = () => {
        this.#waiting.splice(this.#waiting.indexOf(begin), 1);
        reject(whyGone(gone));
      };
      const begin = () => {
        gone.removeEventListener("abort", leave);
        resolve(this.#turn());
      };
      this.#waiting.push(begin);
      gone.addEventListener("abort", leave, { once: true });
    });
  }

  /** Passes from one to the next without ever being free in between: nobody overtakes. */
  #turn(): () => void {
    let isOver = false;
    return () => {
      if (isOver) return;
      isOver = true;
      const next = this.#waiting.shift();
      if (next === undefined) this.#isTaken = false;
      else next();
    };
  }
}

function tooMany({ max, tooMany: what, hint }: Line): BerthError {
  return new BerthError("too_many", `${max} ${what}`, { hint, facts: { limit: max } });
}

export function whyGone({ reason }: AbortSignal): BerthError {
  if (reason instanceof BerthError) return reason;
  return new BerthError("operation_interrupted", "the caller left before the turn came", {
    facts: { admitted: false },
  });
}
