/**
 * Owns how long others wait for a viewer that acknowledges before it is overtaken. A connection takes in megabytes
 * whether anybody reads them or not: one that only looks fast must not overtake one that is.
 * Does not own who waits (audience.ts). Keeping up earns patience; a viewer that is slow has soon used it up.
 */

const patienceMaxMs = 1000;
/** A viewer that acknowledges as much as this is waited for always. */
const keepsUpBytesPerMs = 1000;

export class Patience {
  #leftMs = patienceMaxMs;
  #waitingSince: number | undefined;

  earn(ackedBytes: number): void {
    this.#settle();
    this.#leftMs = Math.min(patienceMaxMs, this.#leftMs + ackedBytes / keepsUpBytesPerMs);
    this.#waitingSince = undefined;
  }

  /** Somebody waits for it from now on, unless there is none left; answers how much there is. */
  spend(): number {
    this.#settle();
    if (this.#leftMs > 0) this.#waitingSince = performance.now();
    return this.#leftMs;
  }

  #settle(): void {
    if (this.#waitingSince === undefined) return;
    const now = performance.now();
    this.#leftMs = Math.max(0, this.#leftMs - (now - this.#waitingSince));
    this.#waitingSince = this.#leftMs > 0 ? now : undefined;
  }
}
