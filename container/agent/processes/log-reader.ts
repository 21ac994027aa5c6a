/**
 * Reads a log from a position on, both streams or one of them, for one connection.
 */
import type { Log } from "./log.ts";
import type { Stream } from "./runs.ts";

/** `cursor` is the position after the bytes. */
export type Piece = { stream: Stream; bytes: Uint8Array; cursor: number };
type Gap = { from: number; to: number };

export class LogReader {
  readonly id: string | undefined;
  position: number;
  readonly #log: Log;
  readonly #stream: Stream | undefined;

  constructor(
    log: Log,
    position: number,
    { stream, id }: { stream: Stream | undefined; id: string | undefined },
  ) {
    this.id = id;
    this.position = position;
    this.#log = log;
    this.#stream = stream;
    log.retention.attach(this);
  }

  /** What was lost before the position, which then moves to the oldest byte. */
  skipGap(): Gap | undefined {
    const { start } = this.#log;
    if (this.position >= start) return undefined;
    const gap = { from: this.position, to: start };
    this.position = start;
    return gap;
  }

  /** At most `bytesMax` bytes, none from `end` on; empty where there are none yet. */
  take(bytesMax: number, end: number): Piece[] {
    const { runs } = this.#log;
    const first = this.#skipOtherStream(end);
    const to = Math.min(first + bytesMax, end, runs.end);
    if (first >= to) return [];
    const block = this.#log.read(first, to - first);
    const pieces: Piece[] = [];
    for (let cursor = first; cursor < to; ) {
      const run = runs.at(cursor);
      if (run === undefined) break;
      const next = Math.min(run.to, to);
      if (this.#stream === undefined || run.stream === this.#stream) {
        const bytes = block.subarray(cursor - first, next - first);
        pieces.push({ stream: run.stream, bytes, cursor: next });
      }
      cursor = next;
    }
    this.#moveTo(to);
    return pieces;
  }

  /** `mayReturn`: it was cut off before it had everything that it asked for. */
  close({ mayReturn }: { mayReturn: boolean }): void {
    const holds = this.#log.onFull === "block" && !this.#log.isClosed;
    this.#log.retention.detach(this, { mayReturn: mayReturn && holds });
  }

  /** Skips a run of the other stream at once, because it may be long. */
  #skipOtherStream(end: number): number {
    const run = this.#log.runs.at(this.position);
    const isOther = run !== undefined && this.#stream !== undefined && run.stream !== this.#stream;
    if (isOther) this.#moveTo(Math.min(run.to, end));
    return this.position;
  }

  #moveTo(position: number): void {
    this.position = position;
    this.#log.onReaderMoved();
  }
}
