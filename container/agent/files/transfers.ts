/** Limits how many calls work on files and archives at once. */
import { BerthError } from "../../../src/protocol/error-codes.ts";
import { limits } from "../../../src/protocol/limits.ts";
import type { Activity } from "../activity.ts";

export class Transfers {
  readonly #activity: Activity;
  #running = 0;
  /** Ends transfers that are over without a notification. */
  beforeRefusing: () => void = () => {};

  constructor(activity: Activity) {
    this.#activity = activity;
  }

  /** Looks for transfers that are over if no more would be admitted. */
  settle(): void {
    if (this.#running >= limits.fileTransfersMax) this.beforeRefusing();
  }

  /** Throws when there are too many. The returned function ends the transfer; a second call does nothing. */
  begin(): () => void {
    const limit = limits.fileTransfersMax;
    this.settle();
    if (this.#running >= limit) throw tooMany(limit);
    this.#running += 1;
    let isOver = false;
    return () => {
      if (!isOver) this.#running -= 1;
      isOver = true;
    };
  }

  /** Throws when there are too many. */
  async run<T>(work: () => Promise<T>): Promise<T> {
    const end = this.begin();
    try {
      return await work();
    } finally {
      end();
    }
  }

  /** Like `begin`, for a response that is sent at the pace of its reader: the sandbox is not idle meanwhile. */
  beginSending(): () => void {
    const end = this.begin();
    const endActivity = this.#activity.begin();
    return () => {
      endActivity();
      end();
    };
  }
}

export function tooMany(limit: number): BerthError {
  return new BerthError("too_many", `${limit} such calls on files are running already.`, {
    hint: "Wait for one of them to end.",
    facts: { limit },
  });
}
