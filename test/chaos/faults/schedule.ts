/**
 * The random order of the faults of one kind, each as often as configured, repeated for ever. At first each comes
 * once before any comes twice, so that short runs include all of them.
 */
import type { Random } from "../../sim/random.ts";

export class Schedule<Item> {
  readonly #counts: readonly (readonly [count: number, item: Item])[];
  readonly #random: Random;
  #left: Item[];

  constructor(counts: readonly (readonly [count: number, item: Item])[], random: Random) {
    this.#counts = counts;
    this.#random = random;
    const once = counts.map(([, item]) => item);
    const repeats = counts.flatMap(([count, item]) => Array<Item>(count - 1).fill(item));
    this.#left = [...this.#shuffled(once), ...this.#shuffled(repeats)];
  }

  /** Stays the same until `next`, so that a fault without a target is retried, not skipped. */
  get current(): Item {
    const [first] = this.#left;
    if (first === undefined) throw new Error("a schedule has an item");
    return first;
  }

  next(): void {
    this.#left.shift();
    if (this.#left.length > 0) return;
    const all = this.#counts.flatMap(([count, item]) => Array<Item>(count).fill(item));
    this.#left = this.#shuffled(all);
  }

  #shuffled(items: Item[]): Item[] {
    const left = [...items];
    const shuffled: Item[] = [];
    while (left.length > 0)
      shuffled.push(...left.splice(this.#random.between(0, left.length - 1), 1));
    return shuffled;
  }
}
