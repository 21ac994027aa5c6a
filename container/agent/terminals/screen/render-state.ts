/**
 * Owns how far one terminal's output has been drawn, which size it had when, and what is kept of a screen while nobody draws.
 * Does not own the drawing (catch-up.ts), nor when it is done (screens.ts).
 */
import type { DrawingProcess } from "./render-client.ts";

/** A terminal's output and size, as whoever draws it needs them. */
export interface ScreenSource {
  readonly key: string;
  readonly cols: number;
  readonly rows: number;
  /** Oldest offset kept in the ring. */
  readonly start: number;
  /** Offset after the newest byte. */
  readonly end: number;
  read(from: number, to: number): Uint8Array;
}

export type Size = { cols: number; rows: number };

/** What one process has drawn of a terminal. */
type Drawn = {
  by: DrawingProcess;
  /** Where drawing began: what was before is not on the screen. */
  from: number;
  to: number;
  size: Size;
};

/** Size changes that are remembered: more within one ring of output are nobody's. */
const sizesMax = 256;

export class Track {
  readonly source: ScreenSource;
  readonly id: number;
  drawn: Drawn | undefined;
  /** A screen from the time of a process that has ended, and the offset that it stands for. */
  kept: { picture: Uint8Array; to: number } | undefined;
  /** Drawing without being asked is on its way. */
  isPlanned = false;
  usedAt = 0;
  readonly #sizes: (Size & { at: number })[];

  constructor(source: ScreenSource, id: number) {
    this.source = source;
    this.id = id;
    this.#sizes = [{ at: 0, cols: source.cols, rows: source.rows }];
  }

  /** The offset up to which there is a screen. */
  position(drawer: DrawingProcess | undefined): number {
    const isCurrent = drawer !== undefined && this.drawn?.by === drawer;
    return (isCurrent ? this.drawn?.to : this.kept?.to) ?? 0;
  }

  resized(): void {
    const { end: at, cols, rows } = this.source;
    const last = this.#sizes.at(-1);
    if (last?.at === at) this.#sizes.pop();
    this.#sizes.push({ at, cols, rows });
    // What was before the ring begins is never drawn again.
    while ((this.#sizes[1]?.at ?? Number.POSITIVE_INFINITY) <= this.source.start) {
      this.#sizes.shift();
    }
    if (this.#sizes.length > sizesMax) this.#sizes.splice(1, 1);
  }

  sizeAt(offset: number): Size {
    return this.#sizes.findLast(({ at }) => at <= offset) ?? this.#sizes[0] ?? this.source;
  }

  /** Where the size changes next. */
  nextSizeAt(offset: number): number {
    return this.#sizes.find(({ at }) => at > offset)?.at ?? Number.POSITIVE_INFINITY;
  }
}
