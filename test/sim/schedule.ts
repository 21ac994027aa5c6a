/**
 * Owns virtual time and all pending work of a run. Whatever happens, happens here, one piece after the other:
 * the earliest first, and of those at the same moment the one that the seed picks.
 */
import type { Random } from "./random.ts";

type Piece = { at: number; tie: number; what: string; work: () => void; isDropped: boolean };

/** Newest last; what is older than this has no part in a failure that anybody reads. */
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

  /** The moment of what comes next. */
  get nextAt(): number | undefined {
    while (this.#heap[0]?.isDropped) this.#pop();
    return this.#heap[0]?.at;
  }

  /** Since the beginning of the run. */
  get elapsedMs(): number {
    return this.now - this.#began;
  }

  after(ms: number, what: string, work: () => void): () => void {
    const at = this.now + Math.max(0, Math.round(ms));
    const piece: Piece = { at, tie: this.#random.next(), what, work, isDropped: false };
    this.#push(piece);
    this.#pending++;
    return () => {
      if (piece.isDropped) return;
      piece.isDropped = true;
      this.#pending--;
    };
  }

  /** False when nothing is left to happen. */
  async step(): Promise<boolean> {
    const piece = this.#next();
    if (piece === undefined) return false;
    piece.isDropped = true;
    this.#pending--;
    this.now = Math.max(this.now, piece.at);
    this.steps++;
    this.say(piece.what);
    piece.work();
    // Every promise that this has settled, and what those settle, runs before the next piece.
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
    let at = heap.length;
    heap.push(piece);
    while (at > 0) {
      const up = (at - 1) >> 1;
      const above = heap[up];
      if (above === undefined || !isBefore(piece, above)) break;
      heap[at] = above;
      at = up;
    }
    heap[at] = piece;
  }

  #pop(): Piece | undefined {
    const heap = this.#heap;
    const first = heap[0];
    const last = heap.pop();
    if (first === undefined || last === undefined || heap.length === 0) return first;
    let at = 0;
    for (;;) {
      const left = heap[2 * at + 1];
      const right = heap[2 * at + 2];
      const below = right !== undefined && left !== undefined && isBefore(right, left) ? 2 : 1;
      const child = below === 2 ? right : left;
      if (child === undefined || !isBefore(child, last)) break;
      heap[at] = child;
      at = 2 * at + below;
    }
    heap[at] = last;
    return first;
  }
}

function isBefore(one: Piece, other: Piece): boolean {
  return one.at < other.at || (one.at === other.at && one.tie < other.tie);
}
