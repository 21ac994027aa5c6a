/** While a snapshot freezes the container, holds requests to the agent back and suspends its timeouts. */
import { BerthError } from "../../../protocol/errors.ts";
import { limits } from "../../../protocol/limits.ts";
import type { StartTimer } from "../../../runtime/timeout.ts";
import { withTimeout } from "../../shared/timeout.ts";
import type { Host } from "../host.ts";

export class SnapshotFreeze {
  readonly #host: Host;
  readonly #freezes = new Set<Promise<unknown>>();
  /** How many freezes have ended. */
  #ends = 0;

  constructor(host: Host) {
    this.#host = host;
  }

  /** Counts the container as frozen until the work settles. */
  async freezeDuring<T>(work: Promise<T>): Promise<T> {
    this.#freezes.add(work);
    try {
      return await work;
    } finally {
      this.#freezes.delete(work);
      this.#ends++;
    }
  }

  /** A timer for agent timeouts: it starts again at the end of each freeze. */
  readonly startTimer: StartTimer = (ms, ring) => {
    let cancel = () => {};
    const wait = () => {
      const ends = this.#ends;
      const check = () => (this.isActive || this.#ends !== ends ? wait() : ring());
      cancel = this.#host.setTimer(ms, check);
    };
    wait();
    return () => cancel();
  };

  get isActive(): boolean {
    return this.#freezes.size > 0;
  }

  /** Waits for the end of the freeze. Call before each request to the agent. */
  async untilOver(limitMs: number = limits.waitMaxMs): Promise<void> {
    const until = this.#host.clock() + limitMs;
    while (this.#freezes.size > 0) {
      try {
        await withTimeout(
          this.#host,
          Promise.allSettled(this.#freezes),
          until - this.#host.clock(),
        );
      } catch {
        throw new BerthError("unavailable", "The files of the sandbox are being saved.", {
          hint: "Try again in a moment.",
        });
      }
    }
  }
}
