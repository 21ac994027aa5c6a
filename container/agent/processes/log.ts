/** Stores the output of one process, both streams in order, and decides when the process waits for its readers. */
import { limits } from "../../../src/protocol/limits.ts";
import { RetentionFloor } from "./retention-floor.ts";
import { Ring } from "./ring.ts";
import { Runs, type Stream } from "./runs.ts";

type OnFull = "drop" | "block" | "hold";
type Tap = (stream: Stream, bytes: Uint8Array) => void;

/** Beyond `logBytesMax`. For `hold` it takes what the pipes still have when the process was ended. */
const spareBytes = { drop: 0, block: limits.processReplayBytes, hold: 1024 * 1024 } as const;

export class Log {
  readonly bytesMax: number;
  readonly onFull: OnFull;
  readonly runs = new Runs(limits.processLogRunsMax);
  readonly retention: RetentionFloor;
  /** Called with all bytes as they come. */
  readonly taps = new Set<Tap>();
  readonly #ring: Ring;
  readonly #waitingReaders = new Set<() => void>();
  readonly #blockedWriters = new Set<() => void>();
  #unreadMax: number;
  #isClosed = false;
  /** The file is closed once the last reader has left. */
  #isReleased = false;

  constructor(folder: string, { logBytesMax, onFull }: { logBytesMax: number; onFull: OnFull }) {
    this.bytesMax = logBytesMax;
    this.onFull = onFull;
    this.#ring = new Ring(folder, logBytesMax + spareBytes[onFull]);
    this.#unreadMax = onFull === "drop" ? Number.POSITIVE_INFINITY : logBytesMax;
    this.retention = new RetentionFloor(limits.processReaderResumeMs, () => {
      this.onReaderMoved();
      this.#closeFileIfUnused();
    });
    // The first reader comes with a call of its own, after the first output.
    if (onFull === "hold") this.retention.expectReader();
  }

  get start(): number {
    return this.runs.start;
  }

  get end(): number {
    return this.runs.end;
  }

  /** No more output will come. */
  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Returns a promise where the process has to wait: it resolves when everything is written. */
  write(stream: Stream, bytes: Uint8Array): void | Promise<void> {
    if (bytes.length > this.#free()) return this.#writeBlocked(stream, bytes);
    this.#append(stream, bytes);
  }

  /** Reads from a cursor that is still stored. */
  read(cursor: number, length: number): Buffer {
    return this.#ring.read(cursor, length);
  }

  /** Resolves when output has come, when no more will come, or after `limitMs`. */
  arrived(limitMs: number): Promise<void> {
    return new Promise((resolve) => {
      const wake = () => {
        clearTimeout(timer);
        this.#waitingReaders.delete(wake);
        resolve();
      };
      const timer = setTimeout(wake, limitMs);
      this.#waitingReaders.add(wake);
    });
  }

  /** A reader moved or left: blocked writers check again. */
  onReaderMoved(): void {
    wakeAll(this.#blockedWriters);
  }

  /** After the exit: takes what the pipes still hold, at the expense of what is stored for reconnecting readers. */
  unblock(): void {
    if (this.onFull !== "drop") this.#unreadMax = this.#ring.bytes;
    this.onReaderMoved();
  }

  close(): void {
    this.#isClosed = true;
    this.onReaderMoved();
    this.retention.close();
    wakeAll(this.#waitingReaders);
  }

  /** Closes the file as soon as nobody reads it. */
  release(): void {
    this.#isReleased = true;
    this.#closeFileIfUnused();
  }

  #free(): number {
    const { onFull, retention } = this;
    if (onFull === "drop" || (onFull === "hold" && !retention.isNeeded)) {
      return Number.POSITIVE_INFINITY;
    }
    return Math.max(0, this.#unreadMax - (this.end - this.retention.value));
  }

  async #writeBlocked(stream: Stream, bytes: Uint8Array): Promise<void> {
    let rest = bytes;
    while (!this.#isClosed) {
      const part = rest.subarray(0, this.#free());
      if (part.length > 0) this.#append(stream, part);
      rest = rest.subarray(part.length);
      if (rest.length === 0) return;
      await new Promise<void>((resolve) => this.#blockedWriters.add(resolve));
    }
  }

  #append(stream: Stream, bytes: Uint8Array): void {
    const cursor = this.end;
    this.runs.append(stream, bytes.length);
    try {
      this.#ring.write(cursor, bytes);
      this.runs.dropBefore(this.end - this.#ring.bytes);
    } catch (error) {
      // The disk is full: the process continues, and readers get a gap.
      console.error("a log could not be written:", error);
      this.runs.dropBefore(this.end);
    }
    for (const tap of this.taps) tap(stream, bytes);
    wakeAll(this.#waitingReaders);
  }

  #closeFileIfUnused(): void {
    if (!this.#isReleased || this.retention.readers > 0) return;
    this.#isReleased = false;
    this.#ring.close();
  }
}

function wakeAll(waiting: Set<() => void>): void {
  const all = [...waiting];
  waiting.clear();
  for (const wake of all) wake();
}
