/**
 * Owns how long one attempt of a call may hang: until its answer begins, then between its bytes, and altogether.
 */

export class Silence {
  readonly #late = new AbortController();
  #timer: ReturnType<typeof setTimeout> | undefined;
  readonly #whole: ReturnType<typeof setTimeout> | undefined;
  #forMs = 0;
  /** Which limit it was, once `isOver`. */
  limitMs = 0;

  constructor(forMs: number, wholeMs: number) {
    this.heard(forMs);
    if (Number.isFinite(wholeMs)) {
      this.#whole = setTimeout(() => this.#end(Math.ceil(wholeMs)), Math.max(0, wholeMs));
    }
  }

  get signal(): AbortSignal {
    return this.#late.signal;
  }

  get isOver(): boolean {
    return this.#late.signal.aborted;
  }

  /** Something was heard: from here it may be silent for so long again. */
  heard(forMs = this.#forMs): void {
    this.#forMs = forMs;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#end(forMs), forMs);
  }

  #end(limitMs: number): void {
    this.limitMs = limitMs;
    this.#late.abort();
  }

  /** Not by `using`, which asks for a symbol that browsers of today lack. */
  end(): void {
    clearTimeout(this.#timer);
    clearTimeout(this.#whole);
  }
}
