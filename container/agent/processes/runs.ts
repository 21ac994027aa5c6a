/**
 * Owns which bytes of a log belong to which stream: runs of one stream, each beginning where the one before it ends.
 * Does not own the bytes (ring.ts). A cursor is the count of bytes of both streams before it.
 */

export type Stream = "stdout" | "stderr";

/** `to` is the cursor after it. */
export type Run = { stream: Stream; to: number };

const roomAtFirst = 64;

export class Runs {
  /** The oldest cursor that is kept, and the one after the newest byte. */
  start = 0;
  end = 0;
  readonly #max: number;
  /** Rings of equal size, by a run's number: the cursor at its beginning, and the bytes of stdout before that. */
  #cursors = new Float64Array(roomAtFirst);
  #stdouts = new Float64Array(roomAtFirst);
  #first = 0;
  #next = 0;
  /** Neighbours are of different streams: a run's stream follows from its number. */
  #evenIs: Stream = "stdout";
  #stdout = 0;

  constructor(max: number) {
    this.#max = max;
  }

  /** The oldest run goes where there are too many. */
  append(stream: Stream, length: number): void {
    if (length === 0) return;
    if (this.#first === this.#next) this.#evenIs = stream;
    if (this.#first === this.#next || this.#streamOf(this.#next - 1) !== stream) this.#begin();
    this.end += length;
    if (stream === "stdout") this.#stdout += length;
  }

  /** What is older than the cursor is kept no more. */
  dropBefore(cursor: number): void {
    this.start = Math.max(this.start, Math.min(cursor, this.end));
    // The newest stays, if empty: the next one's stream is told from it.
    while (this.#first + 1 < this.#next && this.#cursorOf(this.#first + 1) <= this.start) {
      this.#first += 1;
    }
  }

  /** How many bytes a stream has had in all. */
  total(stream: Stream): number {
    return stream === "stdout" ? this.#stdout : this.end - this.#stdout;
  }

  /** The run that holds the byte after the cursor; undefined at the end. The cursor is not older than `start`. */
  at(cursor: number): Run | undefined {
    if (cursor >= this.end) return undefined;
    const run = this.#numberAt(cursor);
    return {
      stream: this.#streamOf(run),
      to: run + 1 < this.#next ? this.#cursorOf(run + 1) : this.end,
    };
  }

  /** How many bytes of the stream came before the cursor. */
  offsetAt(cursor: number, stream: Stream): number {
    if (this.#first === this.#next) return 0;
    const run = this.#numberAt(cursor);
    const within = this.#streamOf(run) === "stdout" ? cursor - this.#cursorOf(run) : 0;
    const stdout = this.#stdoutOf(run) + within;
    return stream === "stdout" ? stdout : cursor - stdout;
  }

  /** The cursor of the byte before which `offset` bytes of the stream came. Undefined: it is kept no more. */
  cursorAt(offset: number, stream: Stream): number | undefined {
    if (offset >= this.total(stream)) return this.end;
    if (offset < this.offsetAt(this.start, stream)) return undefined;
    const before = (run: number) => {
      const stdout = this.#stdoutOf(run);
      return stream === "stdout" ? stdout : this.#cursorOf(run) - stdout;
    };
    let run = this.#last((one) => before(one) <= offset);
    // A run of the other stream may begin at the same offset, before or after it.
    if (this.#streamOf(run) !== stream) run -= 1;
    return this.#cursorOf(run) + offset - before(run);
  }

  #begin(): void {
    // The newest one that was kept though empty is the newest no more.
    this.dropBefore(this.start);
    if (this.#next - this.#first === this.#max) this.dropBefore(this.#cursorOf(this.#first + 1));
    if (this.#next - this.#first === this.#cursors.length) this.#grow();
    const at = this.#next % this.#cursors.length;
    this.#cursors[at] = this.end;
    this.#stdouts[at] = this.#stdout;
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

  /** The last run for which `holds`; it does for the first one, and for none after one for which it does not. */
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
