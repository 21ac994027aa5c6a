/**
 * Owns how many calls work on files and archives at once.
 */
import { BerthError } from "../../../src/protocol/error-codes.ts";
import { limits } from "../../../src/protocol/limits.ts";
import type { Activity } from "../activity.ts";

export class Transfers {
  readonly #activity: Activity;
  #atWork = 0;
  /** Ends what is over without anybody having noticed. */
  beforeRefusing: () => void = () => {};

  constructor(activity: Activity) {
    this.#activity = activity;
  }

  /** Where none more would be let in. */
  settle(): void {
    if (this.#atWork >= limits.fileTransfersMax) this.beforeRefusing();
  }

  /** Throws where there are too many. The answered function is called at the end; more than once is harmless. */
  begin(): () => void {
    const limit = limits.fileTransfersMax;
    this.settle();
    if (this.#atWork >= limit) throw tooMany(limit);
    this.#atWork += 1;
    let isOver = false;
    return () => {
      if (!isOver) this.#atWork -= 1;
      isOver = true;
    };
  }

  /** As `begin`, of what a reader takes at a pace of his own: meanwhile the sandbox is not idle. */
  beginSending(): () => void {
    const end = this.begin();
    const rest = this.#activity.begin();
    return () => {
      rest();
      end();
    };
  }
}

export function tooMany(limit: number): BerthError {
  return new BerthError("too_many", `${limit} such calls work on files already`, {
    hint: "wait for one of them to end",
    facts: { limit },
  });
}
