/**
 * Owns which work that a lease gates runs now, below which fence each piece began, and the end of them.
 * Does not own what the work is (commands, sessions), nor who asks for an end (drain.ts).
 */
import { BerthError } from "../../../src/protocol/error-codes.ts";
import type { Activity } from "../activity.ts";
import { Fence } from "./fence.ts";
import { within } from "./timeout.ts";

/** `gone` is aborted to end it: because its caller went away, or for the reason that is then the answer. */
export type Begun = { fence: number; gone: AbortController };

export class GatedWork {
  readonly fence = new Fence();
  readonly #activity: Activity;
  /** By a promise that resolves when nothing of the work is left. */
  readonly #running = new Map<Promise<unknown>, Begun>();

  constructor(activity: Activity) {
    this.#activity = activity;
  }

  get size(): number {
    return this.#running.size;
  }

  /**
   * Must follow `fence.pass` in the same synchronous piece: between the look at the fence and this, nobody can
   * raise it. `over` never rejects.
   */
  track(over: Promise<unknown>, begun: Begun): void {
    this.#running.set(over, begun);
    const end = this.#activity.begin();
    over.finally(() => {
      this.#running.delete(over);
      end();
    });
  }

  /** Ends what began below the fence; its callers are told why. */
  interruptBelow(fence: number, why: BerthError): void {
    for (const over of this.#below(fence)) this.#running.get(over)?.gone.abort(why);
  }

  /** How many are left that began below a fence that was raised, once there are none or the time is over. */
  async leftBelow(fence: number, waitMs: number): Promise<number> {
    await within(Promise.allSettled(this.#below(fence)), waitMs);
    return this.#below(fence).length;
  }

  /** All of it; resolves when nothing is left or the time is over. */
  async endAll(limitMs: number): Promise<void> {
    this.interruptBelow(Number.POSITIVE_INFINITY, containerStopped());
    await within(Promise.allSettled(this.#running.keys()), limitMs);
  }

  #below(fence: number): Promise<unknown>[] {
    return [...this.#running].filter(([, began]) => began.fence < fence).map(([over]) => over);
  }
}

function containerStopped(): BerthError {
  return new BerthError("operation_interrupted", "the container was stopped under the command", {
    facts: { admitted: true, reason: "container_stopped" },
  });
}
