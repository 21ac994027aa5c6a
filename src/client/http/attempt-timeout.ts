/**
 * Limits one attempt of a request: until the response begins, then between its bytes, and in total.
 */

export class AttemptTimeout {
  readonly #expired = new AbortController();
  #idleTimer: ReturnType<typeof setTimeout> | undefined;
  readonly #totalTimer: ReturnType<typeof setTimeout> | undefined;
  #idleMs = 0;
  /** The limit that was exceeded, once `isExpired`. */
  exceededMs = 0;

  constructor(idleMs: number, totalMs: number) {
    this.restart(idleMs);
    if (Number.isFinite(totalMs)) {
      this.#totalTimer = setTimeout(() => this.#expire(Math.ceil(totalMs)), Math.max(0, totalMs));
    }
  }

  get signal(): AbortSignal {
    return this.#expired.signal;
  }

  get isExpired(): boolean {
    return this.#expired.signal.aborted;
  }

  /** Call it for each sign of life: the idle time begins again, with the same limit unless one is given. */
  restart(idleMs = this.#idleMs): void {
    this.#idleMs = idleMs;
    clearTimeout(this.#idleTimer);
    this.#idleTimer = setTimeout(() => this.#expire(idleMs), idleMs);
  }

  #expire(limitMs: number): void {
    this.exceededMs = limitMs;
    this.#expired.abort();
  }

  /** A method and not `Symbol.dispose`, which today's browsers lack. */
  clear(): void {
    clearTimeout(this.#idleTimer);
    clearTimeout(this.#totalTimer);
  }
}
