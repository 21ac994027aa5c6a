/**
 * Remembers how far the output of one terminal has been rendered, which size it had when, and the snapshot that stands
 * for its screen while no worker runs.
 */
import type { ScreenSource } from "../screen-renderer.ts";
import type { RenderWorker } from "./render-client.ts";

type Size = { cols: number; rows: number };

/** What one worker has rendered of a terminal. */
type Rendering = {
  by: RenderWorker;
  /** Where rendering began: earlier output is not on the screen. */
  from: number;
  to: number;
  size: Size;
};

/** Size changes that are remembered. More of them within one ring of output cannot matter to anybody. */
const sizesMax = 256;

export class RenderState {
  readonly source: ScreenSource;
  readonly id: number;
  rendering: Rendering | undefined;
  /** A snapshot by a worker that has ended, and the offset that it stands for. */
  stored: { bytes: Uint8Array; to: number } | undefined;
  /** Rendering in the background is scheduled. */
  isScheduled = false;
  usedAt = 0;
  readonly #sizes: (Size & { from: number })[];

  constructor(source: ScreenSource, id: number) {
    this.source = source;
    this.id = id;
    this.#sizes = [{ from: 0, cols: source.cols, rows: source.rows }];
  }

  /** The offset up to which there is a screen. */
  renderedTo(worker: RenderWorker | undefined): number {
    const isCurrent = worker !== undefined && this.rendering?.by === worker;
    return (isCurrent ? this.rendering?.to : this.stored?.to) ?? 0;
  }

  recordSize(): void {
    const { end: from, cols, rows } = this.source;
    const last = this.#sizes.at(-1);
    if (last?.from === from) this.#sizes.pop();
    this.#sizes.push({ from, cols, rows });
    // Output from before the ring is never rendered again.
    while ((this.#sizes[1]?.from ?? Number.POSITIVE_INFINITY) <= this.source.start) {
      this.#sizes.shift();
    }
    if (this.#sizes.length > sizesMax) this.#sizes.splice(1, 1);
  }

  sizeAt(offset: number): Size {
    return this.#sizes.findLast(({ from }) => from <= offset) ?? this.#sizes[0] ?? this.source;
  }

  /** The offset of the next change of size. */
  nextSizeAt(offset: number): number {
    return this.#sizes.find(({ from }) => from > offset)?.from ?? Number.POSITIVE_INFINITY;
  }
}
