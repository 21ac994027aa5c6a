/**
 * Lets all timers of one object share a few timers of the runtime. Most timers are cancelled within milliseconds, and workerd
 * keeps about 270 bytes of each cleared timer until the object leaves memory. So none is cleared here: one runtime timer
 * fires soon, calls back what is due, and another one follows while timers remain.
 */

/** An object stays awake until its last runtime timer has fired. The older the oldest timer, the rarer the checks. */
const checkIntervalMs = { min: 20, max: 1_000 };
/** How late a timer fires at most while the runtime's own timers stand still. Each beat costs a call. */
const beatMs = 1_000;

type Timer = { dueAt: number; callback: () => void };
type RuntimeTimer = { firesAt: number };

/** The clock and the timers underneath; tests replace them. */
export type TimerRuntime = {
  clock: () => number;
  setTimer: (ms: number, callback: () => void) => void;
  /** Calls back once after this time, or never; what the clock does has no influence. */
  startBeat?: ((ms: number, onBeat: (hasPassed: boolean) => void) => void) | undefined;
};

const platform: TimerRuntime = {
  clock: () => performance.now(),
  setTimer: (ms, callback) => void setTimeout(callback, ms),
};

export class Timers {
  readonly #runtime: TimerRuntime;
  readonly #timers = new Set<Timer>();
  /** The pending runtime timers. Each one was set to fire before those that were already pending. */
  #pending: RuntimeTimer[] = [];
  #isBeating = false;
  /** The object's own time: if the clock jumps or the machine sleeps, it moves forward by a second at most. */
  #nowAtLastFire = 0;
  #clockAtLastFire = 0;
  /** Since when there has always been a timer. */
  #since = 0;

  constructor(runtime: Partial<TimerRuntime> = {}) {
    this.#runtime = { ...platform, ...runtime };
  }

  /** Calls back once, unless the returned function is called first. */
  set(ms: number, callback: () => void): () => void {
    const now = this.#now();
    if (this.#timers.size === 0) this.#since = now;
    const timer = { dueAt: now + ms, callback };
    this.#timers.add(timer);
    this.#fireBy(timer.dueAt);
    this.#beat();
    return () => void this.#timers.delete(timer);
  }

  #fireBy(dueAt: number): void {
    const now = this.#now();
    const { min, max } = checkIntervalMs;
    const firesAt = Math.min(dueAt, now + Math.min(max, Math.max(min, now - this.#since)));
    if (this.#nextFireAt <= firesAt) return;
    const pending = { firesAt };
    this.#pending.push(pending);
    this.#runtime.setTimer(Math.max(0, Math.ceil(firesAt - now)), () => {
      const firedAt = Math.max(firesAt, this.#now());
      this.#pending = this.#pending.filter((other) => other !== pending);
      this.#moveTo(firedAt);
    });
  }

  #beat(): void {
    if (this.#isBeating || this.#runtime.startBeat === undefined) return;
    this.#isBeating = true;
    const until = this.#now() + beatMs;
    this.#runtime.startBeat(beatMs, (hasPassed) => {
      this.#isBeating = false;
      if (!hasPassed) return;
      const now = Math.max(until, this.#now());
      // A runtime timer that should have fired stands still; others take its place.
      this.#pending = this.#pending.filter(({ firesAt }) => firesAt > now - checkIntervalMs.min);
      this.#moveTo(now);
      if (this.#timers.size > 0) this.#beat();
    });
  }

  #moveTo(now: number): void {
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
    return Math.min(this.#nowAtLastFire + passed, this.#nextFireAt + checkIntervalMs.max);
  }

  get #nextFireAt(): number {
    return this.#pending.at(-1)?.firesAt ?? Number.POSITIVE_INFINITY;
  }

  #soonest(): number | undefined {
    let soonest: number | undefined;
    for (const { dueAt } of this.#timers) soonest = Math.min(dueAt, soonest ?? dueAt);
    return soonest;
  }
}
