/**
 * The time of one object in one instance: it starts at the wall clock or at the newest time that is stored, and then counts
 * what has passed, so that a step of the wall clock neither stops it nor turns it back. See docs/decisions/018-object-clock.md.
 */

/** How much later than planned an interval may end before the rest counts as a step of the clock. */
const lateMs = 1_000;

/** An interval that something else than the wall clock measures. */
type Interval = { from: number; ms: number };

export class ObjectClock {
  readonly #wall: () => number;
  #now: number;
  #wallAtLastReading: number;
  #interval: Interval | undefined;

  constructor(wall: () => number) {
    this.#wall = wall;
    this.#wallAtLastReading = wall();
    this.#now = this.#wallAtLastReading;
  }

  now(): number {
    const wall = this.#wall();
    const passed = Math.max(0, wall - this.#wallAtLastReading);
    this.#wallAtLastReading = wall;
    const until =
      this.#interval === undefined ? undefined : this.#interval.from + this.#interval.ms;
    const latest = until === undefined ? Number.POSITIVE_INFINITY : until + lateMs;
    this.#now = Math.max(this.#now, Math.min(this.#now + passed, latest));
    return this.#now;
  }

  /** Shows at least this time, and runs on from there: the newest stored time is never seen again. */
  startAt(newestStored: number): void {
    this.#now = Math.max(this.now(), newestStored);
  }

  /** From now on, and until the returned function says that these milliseconds are over, at most that much passes. */
  measure(ms: number): (isOver: boolean) => void {
    const interval: Interval = { from: this.now(), ms };
    this.#interval = interval;
    return (isOver) => {
      if (this.#interval !== interval) return;
      const now = this.now();
      this.#interval = undefined;
      if (isOver) this.#now = Math.max(now, interval.from + ms);
    };
  }

  /** Whether the wall clock is behind this time by more than reading both takes. */
  isAhead(): boolean {
    return this.now() > this.#wall() + lateMs;
  }

  /** What the wall clock will show at this time of the object, if nobody sets it. */
  toWall(time: number): number {
    return this.#wall() + (time - this.now());
  }
}
