/**
 * Owns the waits of one object, which share the timers of the runtime. Most waits are given up within milliseconds, and
 * workerd keeps some 270 bytes of each timer that is cleared, until the object leaves memory. So none is cleared here: a
 * timer rings soon, looks who is due, and another follows while somebody waits.
 */

/** An object is awake until its last timer has rung. Who has waited for long will for longer: he is looked at more rarely. */
const looksAfterMs = { min: 20, max: 1_000 };

type Wait = { due: number; ring: () => void };

/** The runtime's, but for tests. */
export type Clockwork = { clock: () => number; later: (ms: number, then: () => void) => void };

const runtime: Clockwork = {
  clock: () => performance.now(),
  later: (ms, then) => void setTimeout(then, ms),
};

export class Timers {
  readonly #runtime: Clockwork;
  readonly #waits = new Set<Wait>();
  /** When timers ring that are on their way: each sooner than those before it. */
  readonly #rings: number[] = [];
  /** A time of its own: a clock that is set, or a machine that slept, brings it on by a second at most. */
  #then = 0;
  #clockThen = 0;
  /** When the first came of those who wait. */
  #since = 0;

  constructor(clockwork = runtime) {
    this.#runtime = clockwork;
  }

  /** Rings once, unless what is answered is called before. */
  wait(ms: number, ring: () => void): () => void {
    const now = this.#now();
    if (this.#waits.size === 0) this.#since = now;
    const wait = { due: now + ms, ring };
    this.#waits.add(wait);
    this.#ringBy(wait.due);
    return () => void this.#waits.delete(wait);
  }

  #ringBy(due: number): void {
    const now = this.#now();
    const { min, max } = looksAfterMs;
    const at = Math.min(due, now + Math.min(max, Math.max(min, now - this.#since)));
    if ((this.#rings.at(-1) ?? Number.POSITIVE_INFINITY) <= at) return;
    this.#rings.push(at);
    this.#runtime.later(Math.max(0, Math.ceil(at - now)), () => this.#rung());
  }

  #rung(): void {
    const planned = this.#rings.at(-1) ?? 0;
    const now = Math.max(planned, this.#now());
    this.#rings.pop();
    this.#then = now;
    this.#clockThen = this.#runtime.clock();
    try {
      for (const wait of [...this.#waits]) {
        if (wait.due <= now && this.#waits.delete(wait)) wait.ring();
      }
    } finally {
      const soonest = this.#soonest();
      if (soonest !== undefined) this.#ringBy(soonest);
    }
  }

  #now(): number {
    const passed = Math.max(0, this.#runtime.clock() - this.#clockThen);
    const next = this.#rings.at(-1) ?? Number.POSITIVE_INFINITY;
    return Math.min(this.#then + passed, next + looksAfterMs.max);
  }

  #soonest(): number | undefined {
    let soonest: number | undefined;
    for (const { due } of this.#waits) soonest = Math.min(due, soonest ?? due);
    return soonest;
  }
}
