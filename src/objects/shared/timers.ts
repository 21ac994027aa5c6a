/**
 * Lets all timers of one object share a few timers of the runtime. Most timers are cancelled within milliseconds, and workerd
 * keeps about 270 bytes of each cleared timer until the object leaves memory. So none is cleared here: one runtime timer
 * fires soon, calls back what is due, and another one follows while timers remain.
 */

/** An object stays awake until its last runtime timer has fired. The older the oldest timer, the rarer the checks. */
const checkIntervalMs = { min: 20, max: 1_000 };

type Timer = { dueAt: number; callback: () => void };

/** The clock and the timers underneath; tests replace them. */
export type TimerRuntime = {
  clock: () => number;
  setTimer: (ms: number, callback: () => void) => void;
};

const platform: TimerRuntime = {
  clock: () => performance.now(),
  setTimer: (ms, callback) => void setTimeout(callback, ms),
};

export class Timers {
  readonly #runtime: TimerRuntime;
  readonly #timers = new Set<Timer>();
  /** When the pending runtime timers fire. Each one was set to fire before those that were already pending. */
  readonly #firesAt: number[] = [];
  /** The object's own time: if the clock jumps or the machine sleeps, it moves forward by a second at most. */
  #nowAtLastFire = 0;
  #clockAtLastFire = 0;
  /** Since when there has always been a timer. */
  #since = 0;

  constructor(runtime = platform) {
    this.#runtime = runtime;
  }

  /** Calls back once, unless the returned function is called first. */
  set(ms: number, callback: () => void): () => void {
    const now = this.#now();
    if (this.#timers.size === 0) this.#since = now;
    const timer = { dueAt: now + ms, callback };
    this.#timers.add(timer);
    this.#fireBy(timer.dueAt);
    return () => void this.#timers.delete(timer);
  }

  #fireBy(dueAt: number): void {
    const now = this.#now();
    const { min, max } = checkIntervalMs;
    const fireAt = Math.min(dueAt, now + Math.min(max, Math.max(min, now - this.#since)));
    if ((this.#firesAt.at(-1) ?? Number.POSITIVE_INFINITY) <= fireAt) return;
    this.#firesAt.push(fireAt);
    this.#runtime.setTimer(Math.max(0, Math.ceil(fireAt - now)), () => this.#fired());
  }

  #fired(): void {
    const planned = this.#firesAt.at(-1) ?? 0;
    const now = Math.max(planned, this.#now());
    this.#firesAt.pop();
    this.#nowAtLastFire = now;
    this.#clockAtLastFire = this.#runtime.clock();
    try {
      for (const timer of [...this.#timers]) {
        if (timer.dueAt <= now && this.#timers.delete(timer)) timer.callback();
      }
    } finally {
      const soonest = this.#soonest();
      if (soonest !== undefined) this.#fireBy(soonest);
    }
  }

  #now(): number {
    const passed = Math.max(0, this.#runtime.clock() - this.#clockAtLastFire);
    const next = this.#firesAt.at(-1) ?? Number.POSITIVE_INFINITY;
    return Math.min(this.#nowAtLastFire + passed, next + checkIntervalMs.max);
  }

  #soonest(): number | undefined {
    let soonest: number | undefined;
    for (const { dueAt } of this.#timers) soonest = Math.min(dueAt, soonest ?? dueAt);
    return soonest;
  }
}
