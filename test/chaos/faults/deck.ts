/**
 * Owns the order of the faults of one line: shuffled by chance, each as often as it is told, and then all of them again.
 * Does not own when they come. The first time each comes once before any comes twice: short runs have all of them.
 */
import type { Random } from "../../sim/random.ts";

export class Deck<Card> {
  readonly #counts: readonly (readonly [count: number, card: Card])[];
  readonly #random: Random;
  #left: Card[];

  constructor(counts: readonly (readonly [count: number, card: Card])[], random: Random) {
    this.#counts = counts;
    this.#random = random;
    const once = counts.map(([, card]) => card);
    const again = counts.flatMap(([count, card]) => Array<Card>(count - 1).fill(card));
    this.#left = [...this.#shuffled(once), ...this.#shuffled(again)];
  }

  /** The same until `next`: a fault that finds nothing to harm is tried again, and not left out. */
  get top(): Card {
    const [first] = this.#left;
    if (first === undefined) throw new Error("a deck has a card");
    return first;
  }

  next(): void {
    this.#left.shift();
    if (this.#left.length > 0) return;
    const all = this.#counts.flatMap(([count, card]) => Array<Card>(count).fill(card));
    this.#left = this.#shuffled(all);
  }

  #shuffled(cards: Card[]): Card[] {
    const left = [...cards];
    const shuffled: Card[] = [];
    while (left.length > 0)
      shuffled.push(...left.splice(this.#random.between(0, left.length - 1), 1));
    return shuffled;
  }
}
