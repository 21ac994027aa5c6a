/**
 * Owns why somebody was refused just now, kept long enough for whoever waited to hear it. Memory: who comes later asks anew.
 */

import type { Place } from "./host.ts";
import type { Refused } from "./result.ts";

const keptMs = 10_000;

export class Refusals {
  readonly #place: Place;
  readonly #of = new Map<string, Refused>();

  constructor(place: Place) {
    this.#place = place;
  }

  keep(id: string, refused: Refused): void {
    this.#of.set(id, refused);
    this.#place.timer(keptMs, () => {
      if (this.#of.get(id) === refused) this.#of.delete(id);
    });
  }

  of(id: string): Refused | undefined {
    return this.#of.get(id);
  }

  forget(id: string): void {
    this.#of.delete(id);
  }
}
