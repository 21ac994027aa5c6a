/** Random numbers by seed: the same seed gives the same numbers on every machine. */
const letters = "abcdefghijklmnopqrstuvwxyz0123456789";

export class Random {
  #state: number;

  constructor(seed: number) {
    this.#state = (seed ^ 0x9e3779b9) >>> 0;
  }

  /** From 0 up to, but not, 1 (mulberry32). */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), this.#state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  /** A whole number, both ends included. */
  between(low: number, high: number): number {
    return low + Math.floor(this.next() * (high - low + 1));
  }

  chance(share: number): boolean {
    return this.next() < share;
  }

  pick<T>(among: readonly [T, ...T[]]): T {
    return among[this.between(0, among.length - 1)] ?? among[0];
  }

  name(length: number): string {
    let name = "";
    while (name.length < length) name += letters.charAt(this.between(0, letters.length - 1));
    return name;
  }
}
