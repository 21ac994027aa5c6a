/**
 * Tracks the work that runs under the lease, with the fence under which each piece started, and ends it.
 * See drain.ts for the call that ends the work of a lost lease.
 */
import { BerthError } from "../../../src/protocol/error-codes.ts";
import type { Activity } from "../activity.ts";
import { Fence } from "./fence.ts";
import { resolvesWithin } from "./timeout.ts";

/** Aborting `controller` ends the work. A BerthError as the reason becomes the response; otherwise the caller has left. */
export type GatedCall = { fence: number; controller: AbortController };

export class GatedWork {
  readonly fence = new Fence();
  readonly #activity: Activity;
  /** By a promise that resolves when nothing of the work is left. */
  readonly #running = new Map<Promise<unknown>, GatedCall>();

  constructor(activity: Activity) {
    this.#activity = activity;
  }

  get size(): number {
    return this.#running.size;
  }

  /** Must follow `fence.pass` synchronously, so that no raise comes in between. A rejection is the caller's to handle. */
  track(ended: Promise<unknown>, call: GatedCall): void {
    this.#running.set(ended, call);
    const endActivity = this.#activity.begin();
    const settle = () => {
      this.#running.delete(ended);
      endActivity();
    };
    ended.then(settle, settle);
  }

  /** Ends the work that started below the fence; its callers get `reason`. */
  endBelow(fence: number, reason: BerthError): void {
    for (const ended of this.#listBelow(fence)) this.#running.get(ended)?.controller.abort(reason);
  }

  /** Waits until nothing that started below the fence is left, or for `waitMs`; resolves with how much is left. */
  async countBelow(fence: number, waitMs: number): Promise<number> {
    await resolvesWithin(Promise.allSettled(this.#listBelow(fence)), waitMs);
    return this.#listBelow(fence).length;
  }

  /** Resolves when nothing is left, or after `limitMs`. */
  async endAll(limitMs: number): Promise<void> {
    this.endBelow(Number.POSITIVE_INFINITY, containerStopped());
    await resolvesWithin(Promise.allSettled(this.#running.keys()), limitMs);
  }

  #listBelow(fence: number): Promise<unknown>[] {
    return [...this.#running].filter(([, call]) => call.fence < fence).map(([ended]) => ended);
  }
}

function containerStopped(): BerthError {
  return new BerthError(
    "operation_interrupted",
    "The container was stopped while the command was running.",
    { facts: { admitted: true, reason: "container_stopped" } },
  );
}
