/**
 * Owns the moments in which everything in the container stands still, because its files are being saved:
 * nobody asks the agent then, and nobody takes its silence for death.
 */

import { BerthError } from "../../../protocol/errors.ts";
import { limits } from "../../../protocol/limits.ts";
import type { Timer } from "../../../runtime/timeout.ts";
import { inTime } from "../../shared/timeout.ts";
import type { Host } from "../host.ts";

export class Stillness {
  readonly #host: Host;
  readonly #works = new Set<Promise<unknown>>();
  /** How often it has ended. */
  #ends = 0;

  constructor(host: Host) {
    this.#host = host;
  }

  /** The work, as it comes out; until then the container stands still. */
  during<T>(work: Promise<T>): Promise<T> {
    const settled = work.then(
      () => undefined,
      () => undefined,
    );
    this.#works.add(settled);
    void settled.then(() => {
      this.#works.delete(settled);
      this.#ends++;
    });
    return work;
  }

  /** A timer for how long an agent may be silent: of that, nothing counts before the end of such a moment. */
  readonly silence: Timer = (ms, ring) => {
    let cancel = () => {};
    const wait = () => {
      const ends = this.#ends;
      const look = () => (this.isHeld || this.#ends !== ends ? wait() : ring());
      cancel = this.#host.timer(ms, look);
    };
    wait();
    return () => cancel();
  };

  get isHeld(): boolean {
    return this.#works.size > 0;
  }

  /** Before each word to the agent. */
  async over(limitMs: number = limits.waitMaxMs): Promise<void> {
    const until = this.#host.clock() + limitMs;
    while (this.#works.size > 0) {
      try {
        await inTime(this.#host, Promise.all(this.#works), until - this.#host.clock());
      } catch {
        throw new BerthError("unavailable", "The files of the sandbox are being saved just now.", {
          hint: "Try again in a moment.",
        });
      }
    }
  }
}
