/**
 * Owns what an object does beside its calls, by what it is: begun twice it is done once, and an alarm waits for it a moment.
 * Does not own what is done, which never rejects.
 */

import type { Place } from "./host.ts";
import { inTime } from "./timeout.ts";

/** The next alarm cannot ring before this one has ended: work that lasts must not keep it from that. */
const alarmWaitMs = 1_000;

export class UnderWay {
  readonly #place: Place;
  readonly #works = new Map<string, Promise<void>>();

  constructor(place: Place) {
    this.#place = place;
  }

  /** Joins what is under way by that key. The object is kept until it is done. */
  begin(key: string, work: () => Promise<void>): Promise<void> {
    const known = this.#works.get(key);
    if (known !== undefined) return known;
    const done = work().finally(() => this.#works.delete(key));
    this.#works.set(key, done);
    this.#place.background(done);
    return done;
  }

  has(key: string): boolean {
    return this.#works.has(key);
  }

  /** Those whose key begins so. */
  of(prefix: string): Promise<void>[] {
    return [...this.#works].filter(([key]) => key.startsWith(prefix)).map(([, done]) => done);
  }

  /** For an alarm: answers when all is done that is under way now, or when the wait is over. */
  async settled(): Promise<void> {
    if (this.#works.size === 0) return;
    const all = Promise.all(this.#works.values());
    // What is late goes on.
    await inTime(this.#place, all, alarmWaitMs).catch(() => undefined);
  }
}
