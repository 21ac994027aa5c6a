/**
 * Virtual time and all pending work of a run. Everything happens here, one piece after the other: the earliest first,
 * and ties in the order that the seed picks.
 */
import type { Random } from "./random.ts";

type Piece = { dueAt: number; tie: number; what: string; work: () => void };

/** Newest last; older entries do not help to read a failure. */
const traceMax = 20_000;

export class Schedule {
  now: number;
  steps = 0;
  readonly trace: string[] = [];
  readonly #began: number;
  readonly #random: Random;
  /** Sorted: the next piece is the last. */
  readonly #pieces: Piece[] = [];

  constructor(random: Random, now: number) {
    this.#random = random;
    this.now = now;
    this.#began = now;
  }

  get pending(): number {
    return this.#pieces.length;
  }

  /** The time of the next piece. */
  get nextAt(): number | undefined {
    return this.#pieces.at(-1)?.dueAt;
  }

  /** Since the start of the run. */
  get elapsedMs(): number {
    return this.now - this.#began;
  }

  /** Returns what cancels the work. */
  after(
    ms: number,
    what: string,
    work: () => void,
    /** Given for work that must not use up a random number. */
    tie: number = this.#random.next(),
  ): () => void {
    const dueAt = this.now + Math.max(0, Math.round(ms));
    const piece: Piece = { dueAt, tie, what, work };
    const later = this.#pieces.findLastIndex((other) => isBefore(piece, other));
    this.#pieces.splice(later + 1, 0, piece);
    return () => {
      const index = this.#pieces.lastIndexOf(piece);
      if (index !== -1) this.#pieces.splice(index, 1);
    };
  }

  /** False when nothing is pending. */
  async step(): Promise<boolean> {
    const piece = this.#pieces.pop();
    if (piece === undefined) return false;
    this.now = Math.max(this.now, piece.dueAt);
    this.steps++;
    this.say(piece.what);
    piece.work();
    // All promises that this settles, directly or not, run before the next piece.
    await new Promise((resolve) => setImmediate(resolve));
    return true;
  }

  say(what: string): void {
    if (this.trace.length < traceMax) this.trace.push(`${this.elapsedMs} ${what}`);
  }
}

function isBefore(left: Piece, right: Piece): boolean {
  return left.dueAt < right.dueAt || (left.dueAt === right.dueAt && left.tie < right.tie);
}
