/**
 * Owns one reader's place in a log, and what it takes from there: both streams, or one of them.
 * Does not own how that is sent (log-events.ts, log-bytes.ts).
 */
import type { Log } from "./log.ts";
import type { Stream } from "./runs.ts";

/** `cursor` is the one after it. */
export type Piece = { stream: Stream; bytes: Uint8Array; cursor: number };
export type Form = "bytes" | "events";
export type Gap = { from: number; to: number };

export class LogReader {
  readonly from: number;
  /** What it asked for. */
  readonly form: string;
  position: number;
  readonly #log: Log;
  readonly #stream: Stream | undefined;

  constructor(log: Log, position: number, stream: Stream | undefined, form: Form) {
    this.#log = log;
    this.from = position;
    this.form = `${form} ${stream ?? "both"}`;
    this.position = position;
    this.#stream = stream;
    log.floor.attach(this, position <= log.start);
  }

  /** What was lost before its place; it stands at the oldest byte then. */
  gap(): Gap | undefined {
    const { start } = this.#log;
    if (this.position >= start) return undefined;
    const gap = { from: this.position, to: start };
    this.position = start;
    return gap;
  }

  /** Up to so many bytes, and none from `end` on; nothing where none are there. */
  take(bytesMax: number, end: number): Piece[] {
    const { runs } = this.#log;
    const first = this.#skip(end);
    const to = Math.min(first + bytesMax, end, runs.end);
    if (first >= to) return [];
    const block = this.#log.read(first, to - first);
    const pieces: Piece[] = [];
    for (let at = first; at < to; ) {
      const run = runs.at(at);
      if (run === undefined) break;
      const cursor = Math.min(run.to, to);
      if (this.#stream === undefined || run.stream === this.#stream) {
        pieces.push({
          stream: run.stream,
          bytes: block.subarray(at - first, cursor - first),
          cursor,
        });
      }
      at = cursor;
    }
    this.#moveTo(to);
    if (pieces.length > 0) this.#log.floor.sent(this);
    return pieces;
  }

  /** Whether a later connection seems to be the same reader's. */
  get isBack(): boolean {
    return this.#log.floor.isBack(this);
  }

  /** `isCut`: before it had all that it asked for. */
  close(isCut: boolean): void {
    this.#log.floor.detach(this, isCut && this.#log.onFull === "block" && !this.#log.isClosed);
  }

  /** Over a run of the other stream, which may be long. */
  #skip(end: number): number {
    const run = this.#log.runs.at(this.position);
    const isOther = run !== undefined && this.#stream !== undefined && run.stream !== this.#stream;
    if (isOther) this.#moveTo(Math.min(run.to, end));
    return this.position;
  }

  #moveTo(position: number): void {
    this.position = position;
    this.#log.moved();
  }
}
