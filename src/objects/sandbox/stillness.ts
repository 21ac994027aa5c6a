/**
 * Owns the moments in which everything in the container stands still, because its files are being saved:
 * nobody asks the agent then, and nobody takes its silence for death.
 */
import { BerthError } from "../../protocol/errors.ts";
import { limits } from "../../protocol/limits.ts";
import { inTime } from "../in-time.ts";
import type { Host } from "./host.ts";

export class Stillness {
  readonly #host: Host;
  readonly #works = new Set<Promise<unknown>>();

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
    void settled.then(() => this.#works.delete(settled));
    return work;
  }

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
