/**
 * Owns the one alarm of an object. Does not own deadlines: it is told the nearest.
 */
import type { Place } from "./host.ts";

/** One that should have rung this long ago is not relied on. */
const overdueMs = 60_000;

export class Alarm {
  readonly #place: Place;
  /** As this instance has set it; what an earlier one has set may still ring, early and harmless. */
  #at: number | undefined;

  constructor(place: Place) {
    this.#place = place;
  }

  /** It is not moved later: one that rings early looks and sets it anew, and costs less than a write for each call. */
  setBy(at: number): void {
    const set = this.#at;
    if (set !== undefined && set <= at && set > this.#place.clock() - overdueMs) return;
    this.#at = at;
    this.#place.setAlarm(at);
  }

  /** For one that would ring for nothing, and then be set to this: it is the same write. */
  moveTo(at: number): void {
    if (this.#at === undefined || this.#at >= at) return;
    this.#at = at;
    this.#place.setAlarm(at);
  }

  rang(): void {
    this.#at = undefined;
  }
}
