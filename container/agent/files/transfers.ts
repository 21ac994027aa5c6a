/**
 * Owns how many calls work on files and archives at once.
 */
import { BerthError } from "../../../src/protocol/error-codes.ts";
import { limits } from "../../../src/protocol/limits.ts";

export class Transfers {
  #atWork = 0;
  /** Ends what is over without anybody having noticed. */
  beforeRefusing: () => void = () => {};

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
}

export function tooMany(limit: number): BerthError {
  return new BerthError("too_many", `${limit} such calls work on files already`, {
    hint: "wait for one of them to end",
    facts: { limit },
  });
}
