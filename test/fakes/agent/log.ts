/**
 * Owns the log of one process: both streams in the order in which they came, by cursor, up to its size.
 * Does not own how it is written down for a reader: log-stream.ts.
 */

import { limits } from "../../../src/protocol/limits.ts";
import type { Process } from "../../../src/protocol/process.ts";
import { joined } from "./output.ts";
import type { Stop } from "./stop.ts";

export type Stream = "stdout" | "stderr";
/** `at`: bytes of both streams before it; `offset`: of its own. */
export type Run = { stream: Stream; at: number; offset: number; bytes: Uint8Array };
export type Reader = { at: number };

const runBytesMax = 16 * 1024;

export class Log {
  readonly #bytesMax: number;
  readonly #onFull: "drop" | "block";
  readonly #runs: Run[] = [];
  readonly #watchers = new Set<() => void>();
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
      this.#runs.push({ stream, at: this.#end, offset: this.#written[stream], bytes: piece });
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

  /** The next of it, if there is any: `after` bytes of both, or `offset` bytes of the one. */
  next(from: { after: number } | { offset: number }, stream: Stream | undefined): Run | undefined {
    for (const run of this.#runs) {
      if (stream !== undefined && run.stream !== stream) continue;
      const skip = "offset" in from ? from.offset - run.offset : from.after - run.at;
      if (skip >= run.bytes.length) continue;
      const left = Math.max(0, skip, this.#start - run.at);
      if (left >= run.bytes.length) continue;
      const { at, offset, bytes } = run;
      return { stream: run.stream, at: at + left, offset: offset + left, bytes: bytes.slice(left) };
    }
    return undefined;
  }

  readBy(reader: Reader, to: number): void {
    reader.at = Math.max(reader.at, to);
    this.#readTo = Math.max(this.#readTo, to);
    this.#changed();
  }

  /** Once; the answered function takes it back. */
  onChange(watcher: () => void): () => void {
    this.#watchers.add(watcher);
    return () => this.#watchers.delete(watcher);
  }

  /** What is kept of one stream. */
  kept(stream: Stream): Uint8Array {
    return joined(this.#runs.filter((run) => run.stream === stream).map(({ bytes }) => bytes));
  }

  get #read(): number {
    const places = [...this.readers].map(({ at }) => at);
    return places.length === 0 ? this.#readTo : Math.min(...places);
  }

  #drop(): void {
    const replay = this.#onFull === "block" ? limits.processReplayBytes : 0;
    this.#start = Math.max(this.#start, this.#end - this.#bytesMax - replay);
    for (;;) {
      const first = this.#runs[0];
      if (first === undefined || first.at + first.bytes.length > this.#start) return;
      this.#runs.shift();
    }
  }

  #changed(): void {
    const watchers = [...this.#watchers];
    this.#watchers.clear();
    for (const watcher of watchers) watcher();
  }
}
