/**
 * Finds the oldest byte of a log that a reader still needs, for a process that waits for its readers.
 * A reader that was cut off keeps its position for a while, so that it loses nothing when it reconnects.
 */
import { limits } from "../../../src/protocol/limits.ts";

/** One connection. Without an `id` every connection counts as a reader of its own. */
type ReaderConnection = { readonly id: string | undefined; readonly position: number };

type Hold = { position: number; timer: ReturnType<typeof setTimeout> };

const holdsMax = limits.processFollowersMax;

export class RetentionFloor {
  readonly #connected = new Set<ReaderConnection>();
  /** Positions of readers that were cut off, by reader id, oldest first. A reader without an id has a symbol. */
  readonly #holds = new Map<string | symbol, Hold>();
  readonly #holdMs: number;
  readonly #onRise: () => void;
  #furthest = 0;

  /** `onRise` is called whenever the floor may have risen. */
  constructor(holdMs: number, onRise: () => void) {
    this.#holdMs = holdMs;
    this.#onRise = onRise;
  }

  get readers(): number {
    return this.#connected.size;
  }

  /** Whether a reader is connected or expected. */
  get isNeeded(): boolean {
    return this.#connected.size > 0 || this.#holds.size > 0;
  }

  /** Keeps everything from the start for a first reader, as long as for one that was cut off. */
  expectReader(): void {
    this.#hold({ id: undefined, position: 0 });
  }

  /** Without a reader: the furthest position that a reader ever reached. */
  get value(): number {
    const needed = [...this.#connected, ...this.#holds.values()].map(({ position }) => position);
    return needed.length === 0 ? this.#furthest : Math.min(...needed);
  }

  attach(reader: ReaderConnection): void {
    const key = reader.id ?? this.#anonymousHoldFrom(reader.position);
    if (key !== undefined) this.#release(key);
    this.#connected.add(reader);
  }

  /** `mayReturn`: it was cut off before it had everything that it asked for. */
  detach(reader: ReaderConnection, { mayReturn }: { mayReturn: boolean }): void {
    if (!this.#connected.delete(reader)) return;
    this.#furthest = Math.max(this.#furthest, reader.position);
    if (mayReturn) this.#hold(reader);
    this.#onRise();
  }

  close(): void {
    for (const key of [...this.#holds.keys()]) this.#release(key);
  }

  #hold({ id, position }: ReaderConnection): void {
    const key = id ?? Symbol();
    this.#release(key);
    const expire = () => {
      this.#release(key);
      this.#onRise();
    };
    this.#holds.set(key, { position, timer: setTimeout(expire, this.#holdMs) });
    const [oldest] = this.#holds.keys();
    if (this.#holds.size > holdsMax && oldest !== undefined) this.#release(oldest);
  }

  /** The nearest hold that a connection without an id may continue: it begins at or before that position. */
  #anonymousHoldFrom(from: number): symbol | undefined {
    let nearest: { key: symbol; position: number } | undefined;
    for (const [key, { position }] of this.#holds) {
      if (typeof key !== "symbol" || position < from) continue;
      if (nearest === undefined || position < nearest.position) nearest = { key, position };
    }
    return nearest?.key;
  }

  #release(key: string | symbol): void {
    clearTimeout(this.#holds.get(key)?.timer);
    this.#holds.delete(key);
  }
}
