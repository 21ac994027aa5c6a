/**
 * Limits how long others wait for a viewer that acknowledges before they overtake it. A connection takes in megabytes
 * whether anybody reads them or not, so a viewer that only looks fast must not overtake one that is. A viewer that keeps
 * up earns budget; a slow one soon spends it.
 */

const budgetMaxMs = 1000;
/** The others always wait for a viewer that acknowledges at this rate. */
const keepsUpBytesPerMs = 1000;

export class LagBudget {
  #leftMs = budgetMaxMs;
  #waitingSince: number | undefined;

  earn(ackedBytes: number): void {
    this.#settle();
    this.#leftMs = Math.min(budgetMaxMs, this.#leftMs + ackedBytes / keepsUpBytesPerMs);
    this.#waitingSince = undefined;
  }

  /** Others wait from now on, unless nothing is left. Returns what is left. */
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
