/**
 * The log of one process: both streams in order, read by cursor, bounded in size. See log-stream.ts for its formats.
 */

import { limits } from "../../../src/protocol/limits.ts";
import type { Process } from "../../../src/protocol/process.ts";
import { concat } from "./output.ts";
import type { Stop } from "./stop.ts";

export type Stream = "stdout" | "stderr";
/** `position`: bytes of both streams before it; `offset`: bytes of its own stream. */
export type Run = { stream: Stream; position: number; offset: number; bytes: Uint8Array };
export type Reader = { position: number };

const runBytesMax = 16 * 1024;

export class Log {
  readonly #bytesMax: number;
  readonly #onFull: "drop" | "block";
  readonly #runs: Run[] = [];
  readonly #listeners = new Set<() => void>();
  readonly readers = new Set<Reader>();
  #readTo = 0;
  #start = 0;
  #end = 0;
  #closed = false;
  readonly #written = { stdout: 0, stderr: 0 };

  constructor(bytesMax: number, onFull: "drop" | "block") {
    this.#bytesMax = bytesMax;
    this.#onFull = onFull;
  }

  get facts(): Process["log"] {
    return {
      start: this.#start,
      end: this.#end,
      stdoutBytes: this.#written.stdout,
      stderrBytes: this.#written.stderr,
      bytesMax: this.#bytesMax,
      onFull: this.#onFull,
    };
  }

  get closed(): boolean {
    return this.#closed;
  }

  async write(stream: Stream, bytes: Uint8Array, stop: Stop): Promise<void> {
    for (let from = 0; from < bytes.length; from += runBytesMax) {
      const piece = bytes.slice(from, from + runBytesMax);
      while (this.#onFull === "block" && this.#end + piece.length - this.#read > this.#bytesMax) {
        await stop.wait<void>((done) => this.onChange(done));
      }
      this.#runs.push({ stream, position: this.#end, offset: this.#written[stream], bytes: piece });
      this.#end += piece.length;
      this.#written[stream] += piece.length;
      this.#drop();
      this.#changed();
    }
  }

  close(): void {
    this.#closed = true;
    this.#changed();
  }

  /** The next run after a cursor, if there is one: `after` bytes of both streams, or `offset` bytes of one. */
  next(from: { after: number } | { offset: number }, stream: Stream | undefined): Run | undefined {
    for (const run of this.#runs) {
      if (stream !== undefined && run.stream !== stream) continue;
      const skip = "offset" in from ? from.offset - run.offset : from.after - run.position;
      if (skip >= run.bytes.length) continue;
      const skipped = Math.max(0, skip, this.#start - run.position);
      if (skipped >= run.bytes.length) continue;
      return {
        stream: run.stream,
        position: run.position + skipped,
        offset: run.offset + skipped,
        bytes: run.bytes.slice(skipped),
      };
    }
    return undefined;
  }

  readBy(reader: Reader, to: number): void {
    reader.position = Math.max(reader.position, to);
    this.#readTo = Math.max(this.#readTo, to);
    this.#changed();
  }

  /** Called once; the returned function cancels it. */
  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** The retained output of one stream. */
  retained(stream: Stream): Uint8Array {
    return concat(this.#runs.filter((run) => run.stream === stream).map(({ bytes }) => bytes));
  }

  get #read(): number {
    const positions = [...this.readers].map(({ position }) => position);
    return positions.length === 0 ? this.#readTo : Math.min(...positions);
  }

  #drop(): void {
    const replay = this.#onFull === "block" ? limits.processReplayBytes : 0;
    this.#start = Math.max(this.#start, this.#end - this.#bytesMax - replay);
    for (;;) {
      const first = this.#runs[0];
      if (first === undefined || first.position + first.bytes.length > this.#start) return;
      this.#runs.shift();
    }
  }

  #changed(): void {
    const listeners = [...this.#listeners];
    this.#listeners.clear();
    for (const listener of listeners) listener();
  }
}
