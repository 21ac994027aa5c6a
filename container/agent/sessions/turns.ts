/**
 * Owns whose turn it is in a session: one at a time, in the order in which they came, a bounded number waiting.
 * Does not own what is done in a turn.
 */
import { BerthError } from "../../../src/protocol/error-codes.ts";
import { limits } from "../../../src/protocol/limits.ts";

export class Turns {
  readonly #waiting: (() => void)[] = [];
  #isTaken = false;

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
    if (this.#waiting.length >= limits.sessionWaitersMax) throw tooMany();
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

function tooMany(): BerthError {
  return new BerthError(
    "too_many",
    `${limits.sessionWaitersMax} commands wait for their turn in this session already`,
    {
      hint: "wait for one of them to end, or use another session",
      facts: { limit: limits.sessionWaitersMax },
    },
  );
}

function whyGone({ reason }: AbortSignal): BerthError {
  if (reason instanceof BerthError) return reason;
  return new BerthError("operation_interrupted", "the caller left before the turn came", {
    facts: { admitted: false },
  });
}
