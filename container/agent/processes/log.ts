/**
 * Owns the log of one process: what is kept of both streams in the order in which they came, and when the process
 * has to wait. Does not own reading it (log-reader.ts), nor the pipes.
 */
import { limits } from "../../../src/protocol/limits.ts";
import { Floor } from "./floor.ts";
import { type Form, LogReader } from "./log-reader.ts";
import { Ring } from "./ring.ts";
import { Runs, type Stream } from "./runs.ts";

export type OnFull = "drop" | "block";
type Tap = (stream: Stream, bytes: Uint8Array) => void;

export class Log {
  readonly bytesMax: number;
  readonly onFull: OnFull;
  readonly runs = new Runs(limits.processLogRunsMax);
  readonly floor: Floor;
  /** Told all bytes as they come. */
  readonly taps = new Set<Tap>();
  readonly #ring: Ring;
  readonly #sleepers = new Set<() => void>();
  readonly #held = new Set<() => void>();
  #unreadMax: number;
  #isClosed = false;
  #isFree = false;

  constructor(folder: string, { logBytesMax, onFull }: { logBytesMax: number; onFull: OnFull }) {
    this.bytesMax = logBytesMax;
    this.onFull = onFull;
    const replay = onFull === "block" ? limits.processReplayBytes : 0;
    this.#ring = new Ring(folder, logBytesMax + replay);
    this.#unreadMax = onFull === "block" ? logBytesMax : Number.POSITIVE_INFINITY;
    this.floor = new Floor(limits.processReaderBackMs, () => {
      this.moved();
      this.#freeIfUnused();
    });
  }

  get start(): number {
    return this.runs.start;
  }

  get end(): number {
    return this.runs.end;
  }

  /** No more will come. */
  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** A promise where the process has to wait: it resolves when all was written. */
  write(stream: Stream, bytes: Uint8Array): void | Promise<void> {
    if (bytes.length > this.#room()) return this.#writeHeld(stream, bytes);
    this.#append(stream, bytes);
  }

  attach(position: number, stream: Stream | undefined, form: Form): LogReader {
    return new LogReader(this, position, stream, form);
  }

  /** From `at`, which is kept. */
  read(at: number, length: number): Buffer {
    return this.#ring.read(at, length);
  }

  /** Resolves when more has come, no more will come, or the time is over. */
  arrived(limitMs: number): Promise<void> {
    return new Promise((resolve) => {
      const wake = () => {
        clearTimeout(timer);
        this.#sleepers.delete(wake);
        resolve();
      };
      const timer = setTimeout(wake, limitMs);
      this.#sleepers.add(wake);
    });
  }

  /** A reader did: whoever is held looks again. */
  moved(): void {
    wakeAll(this.#held);
  }

  /** The process is gone: what its pipes still hold comes in at once, in place of what is kept for those who come back. */
  lift(): void {
    if (this.onFull === "block") this.#unreadMax = this.#ring.bytes;
    this.moved();
  }

  close(): void {
    this.#isClosed = true;
    this.moved();
    this.floor.close();
    wakeAll(this.#sleepers);
  }

  /** Once its last reader is gone too. */
  free(): void {
    this.#isFree = true;
    this.#freeIfUnused();
  }

  #room(): number {
    if (this.onFull === "drop") return Number.POSITIVE_INFINITY;
    return Math.max(0, this.#unreadMax - (this.end - this.floor.value));
  }

  async #writeHeld(stream: Stream, bytes: Uint8Array): Promise<void> {
    let rest = bytes;
    while (!this.#isClosed) {
      const part = rest.subarray(0, this.#room());
      if (part.length > 0) this.#append(stream, part);
      rest = rest.subarray(part.length);
      if (rest.length === 0) return;
      await new Promise<void>((resolve) => this.#held.add(resolve));
    }
  }

  #append(stream: Stream, bytes: Uint8Array): void {
    const at = this.end;
    this.runs.append(stream, bytes.length);
    try {
      this.#ring.write(at, bytes);
      this.runs.dropBefore(this.end - this.#ring.bytes);
    } catch (error) {
      // A full disk: the process goes on, and readers are told of the gap.
      console.error("a log could not be written:", error);
      this.runs.dropBefore(this.end);
    }
    for (const tap of this.taps) tap(stream, bytes);
    wakeAll(this.#sleepers);
  }

  #freeIfUnused(): void {
    if (!this.#isFree || this.floor.readers > 0) return;
    this.#isFree = false;
    this.#ring.close();
  }
}

function wakeAll(waiting: Set<() => void>): void {
  const all = [...waiting];
  waiting.clear();
  for (const wake of all) wake();
}
