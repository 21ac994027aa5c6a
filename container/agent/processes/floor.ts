/**
 * Owns up to where a log has been read, for the process that waits until somebody has: the slowest reader's place.
 * Does not own what is kept (log.ts). A reader who was cut off counts on for a while, so that he loses nothing.
 */
import { limits } from "../../../src/protocol/limits.ts";

/** `from`: where it began. */
type Place = { from: number; position: number };

/** As many as may be connected: more are not waited for. */
const goneMax = limits.processFollowersMax;

export class Floor {
  readonly #readers = new Set<Place>();
  readonly #gone = new Map<Place, ReturnType<typeof setTimeout>>();
  /** Readers who are the next connection of one that was cut off. */
  readonly #back = new WeakSet<Place>();
  readonly #backMs: number;
  readonly #onRise: () => void;
  #furthest = 0;

  /** `onRise`: it may have risen by itself. */
  constructor(backMs: number, onRise: () => void) {
    this.#backMs = backMs;
    this.#onRise = onRise;
  }

  get readers(): number {
    return this.#readers.size;
  }

  /** Without a reader: the furthest that ever was delivered. */
  get value(): number {
    let slowest = Number.POSITIVE_INFINITY;
    for (const { position } of this.#readers) slowest = Math.min(slowest, position);
    for (const { position } of this.#gone.keys()) slowest = Math.min(slowest, position);
    return slowest === Number.POSITIVE_INFINITY ? this.#furthest : slowest;
  }

  attach(reader: Place): void {
    // He who comes back to where another was is him, or does what he would have.
    for (const place of [...this.#gone.keys()]) {
      if (place.position >= reader.position) this.#forget(place);
    }
    this.#readers.add(reader);
  }

  /** `isCut`: he may come back. */
  detach(reader: Place, isCut: boolean): void {
    if (!this.#readers.has(reader)) return;
    const isBack = isCut && this.#isBack(reader);
    this.#readers.delete(reader);
    this.#furthest = Math.max(this.#furthest, reader.position);
    if (isCut && !isBack) {
      const place = { from: reader.from, position: reader.position };
      const forget = () => {
        this.#forget(place);
        this.#onRise();
      };
      this.#gone.set(place, setTimeout(forget, this.#backMs));
      const [oldest] = this.#gone.keys();
      if (this.#gone.size > goneMax && oldest !== undefined) this.#forget(oldest);
    }
    this.#onRise();
  }

  /** Nobody is waited for any more. */
  close(): void {
    for (const place of [...this.#gone.keys()]) this.#forget(place);
  }

  /** Whether he has connected anew already: an end of a connection is often seen late. */
  #isBack(reader: Place): boolean {
    const all = [...this.#readers];
    const next = all.slice(all.indexOf(reader) + 1).find(
      (other) =>
        !this.#back.has(other) &&
        // Two who began at the same place are two.
        other.from > reader.from &&
        other.from <= reader.position &&
        reader.position - other.from <= limits.processReplayBytes,
    );
    if (next !== undefined) this.#back.add(next);
    return next !== undefined;
  }

  #forget(place: Place): void {
    clearTimeout(this.#gone.get(place));
    this.#gone.delete(place);
  }
}
