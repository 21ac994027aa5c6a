/**
 * Maps the cursors of a log to its two streams: runs of one stream, each beginning where the one before it ends.
 * A cursor counts the bytes of both streams before it.
 */

export type Stream = "stdout" | "stderr";

/** `to` is the cursor after the run. */
type Run = { stream: Stream; to: number };

const firstCapacity = 64;

export class Runs {
  /** The oldest stored cursor, and the one after the newest byte. */
  start = 0;
  end = 0;
  readonly #max: number;
  /** Rings of equal size, indexed by run number: the cursor at its start, and the bytes of stdout before that. */
  #cursors = new Float64Array(firstCapacity);
  #stdouts = new Float64Array(firstCapacity);
  #first = 0;
  #next = 0;
  /** Neighbouring runs alternate between the streams, so the number of a run gives its stream. */
  #evenIs: Stream = "stdout";
  #stdout = 0;

  constructor(max: number) {
    this.#max = max;
  }

  /** Drops the oldest run when there are too many. */
  append(stream: Stream, length: number): void {
    if (length === 0) return;
    if (this.#first === this.#next) this.#evenIs = stream;
    if (this.#first === this.#next || this.#streamOf(this.#next - 1) !== stream) this.#begin();
    this.end += length;
    if (stream === "stdout") this.#stdout += length;
  }

  dropBefore(cursor: number): void {
    this.start = Math.max(this.start, Math.min(cursor, this.end));
    // The newest run stays even if it is empty, because the stream of the next one follows from it.
    while (this.#first + 1 < this.#next && this.#cursorOf(this.#first + 1) <= this.start) {
      this.#first += 1;
    }
  }

  /** All bytes that the stream ever had. */
  total(stream: Stream): number {
    return stream === "stdout" ? this.#stdout : this.end - this.#stdout;
  }

  /** The run of the byte at the cursor; undefined at the end. The cursor must not be older than `start`. */
  at(cursor: number): Run | undefined {
    if (cursor >= this.end) return undefined;
    const run = this.#numberAt(cursor);
    return {
      stream: this.#streamOf(run),
      to: run + 1 < this.#next ? this.#cursorOf(run + 1) : this.end,
    };
  }

  /** Counts the bytes of the stream before the cursor. */
  offsetAt(cursor: number, stream: Stream): number {
    if (this.#first === this.#next) return 0;
    const run = this.#numberAt(cursor);
    const within = this.#streamOf(run) === "stdout" ? cursor - this.#cursorOf(run) : 0;
    const stdout = this.#stdoutOf(run) + within;
    return stream === "stdout" ? stdout : cursor - stdout;
  }

  /** The cursor at an offset of the stream; undefined if it is no longer stored. */
  cursorAt(offset: number, stream: Stream): number | undefined {
    if (offset >= this.total(stream)) return this.end;
    if (offset < this.offsetAt(this.start, stream)) return undefined;
    const before = (run: number) => {
      const stdout = this.#stdoutOf(run);
      return stream === "stdout" ? stdout : this.#cursorOf(run) - stdout;
    };
    let run = this.#last((candidate) => before(candidate) <= offset);
    // A run of the other stream may begin at the same offset, before or after it.
    if (this.#streamOf(run) !== stream) run -= 1;
    return this.#cursorOf(run) + offset - before(run);
  }

  #begin(): void {
    // Drops the newest run if it is empty: it is no longer needed.
    this.dropBefore(this.start);
    if (this.#next - this.#first === this.#max) this.dropBefore(this.#cursorOf(this.#first + 1));
    if (this.#next - this.#first === this.#cursors.length) this.#grow();
    const index = this.#next % this.#cursors.length;
    this.#cursors[index] = this.end;
    this.#stdouts[index] = this.#stdout;
    this.#next += 1;
  }

  #grow(): void {
    const size = Math.min(this.#cursors.length * 2, this.#max);
    const [cursors, stdouts] = [new Float64Array(size), new Float64Array(size)];
    for (let run = this.#first; run < this.#next; run += 1) {
      cursors[run % size] = this.#cursorOf(run);
      stdouts[run % size] = this.#stdoutOf(run);
    }
    this.#cursors = cursors;
    this.#stdouts = stdouts;
  }

  #numberAt(cursor: number): number {
    return this.#last((run) => this.#cursorOf(run) <= cursor);
  }

  /** Binary search: the last run for which `holds`. It holds for the first run, and for none after one that fails. */
  #last(holds: (run: number) => boolean): number {
    let [low, high] = [this.#first, this.#next - 1];
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      if (holds(middle)) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  #streamOf(run: number): Stream {
    const other = this.#evenIs === "stdout" ? "stderr" : "stdout";
    return run % 2 === 0 ? this.#evenIs : other;
  }

  #cursorOf(run: number): number {
    return this.#cursors[run % this.#cursors.length] ?? 0;
  }

  #stdoutOf(run: number): number {
    return this.#stdouts[run % this.#stdouts.length] ?? 0;
  }
}
