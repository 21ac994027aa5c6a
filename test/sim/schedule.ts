/**
 * Virtual time and all pending work of a run. Everything happens here, one piece after the other: the earliest first,
 * and ties in the order that the seed picks.
 */
import type { Random } from "./random.ts";

type Piece = { dueAt: number; tie: number; what: string; work: () => void; isDropped: boolean };

/** Newest last; older entries do not help to read a failure. */
const traceMax = 20_000;

export class Schedule {
  now: number;
  steps = 0;
  readonly trace: string[] = [];
  readonly #began: number;
  readonly #random: Random;
  readonly #heap: Piece[] = [];
  #pending = 0;

  constructor(random: Random, now: number) {
    this.#random = random;
    this.now = now;
    this.#began = now;
  }

  get pending(): number {
    return this.#pending;
  }

  /** The time of the next piece. */
  get nextAt(): number | undefined {
    while (this.#heap[0]?.isDropped) this.#pop();
    return this.#heap[0]?.dueAt;
  }

  /** Since the start of the run. */
  get elapsedMs(): number {
    return this.now - this.#began;
  }

  after(ms: number, what: string, work: () => void): () => void {
    const dueAt = this.now + Math.max(0, Math.round(ms));
    const piece: Piece = { dueAt, tie: this.#random.next(), what, work, isDropped: false };
    this.#push(piece);
    this.#pending++;
    return () => {
      if (piece.isDropped) return;
      piece.isDropped = true;
      this.#pending--;
    };
  }

  /** False when nothing is pending. */
  async step(): Promise<boolean> {
    const piece = this.#next();
    if (piece === undefined) return false;
    piece.isDropped = true;
    this.#pending--;
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

  #next(): Piece | undefined {
    for (;;) {
      const piece = this.#pop();
      if (piece === undefined || !piece.isDropped) return piece;
    }
  }

  #push(piece: Piece): void {
    const heap = this.#heap;
    let index = heap.length;
    heap.push(piece);
    while (index > 0) {
      const up = (index - 1) >> 1;
      const above = heap[up];
      if (above === undefined || !isBefore(piece, above)) break;
      heap[index] = above;
      index = up;
    }
    heap[index] = piece;
  }

  #pop(): Piece | undefined {
    const heap = this.#heap;
    const first = heap[0];
    const last = heap.pop();
    if (first === undefined || last === undefined || heap.length === 0) return first;
    let index = 0;
    for (;;) {
      const left = heap[2 * index + 1];
      const right = heap[2 * index + 2];
      const below = right !== undefined && left !== undefined && isBefore(right, left) ? 2 : 1;
      const child = below === 2 ? right : left;
      if (child === undefined || !isBefore(child, last)) break;
      heap[index] = child;
      index = 2 * index + below;
    }
    heap[index] = last;
    return first;
  }
}

function isBefore(left: Piece, right: Piece): boolean {
  return left.dueAt < right.dueAt || (left.dueAt === right.dueAt && left.tie < right.tie);
}
