/** Renders the screens of the agent's terminals, on request and in the background before output leaves the ring. */
import { limits } from "../../../../src/protocol/limits.ts";
import type { Screen } from "../../../../src/protocol/terminal.ts";
import type { RenderWorker, StartRenderWorker } from "./render-client.ts";
import { RenderPool, type RenderTask } from "./render-pool.ts";
import { command } from "./render-protocol.ts";
import { Rendering, type ScreenSource, sliceBytes } from "./rendering.ts";

/** Bytes that show the screen on a fresh terminal, and the offset of the output that it stands for. */
export type ScreenSnapshot = { bytes: Uint8Array; offset: number };

/** With more unrendered output, background rendering begins, so that the screen has what the ring then loses. */
const unrenderedBytesMax = limits.terminalRingBytes / 2;
/** Output that comes faster than it can be rendered is not rendered in the background; checked again after this. */
const floodCheckMs = 2000;
const idleEndMs = 60_000;
/** Each cell takes some bytes of the worker. Beyond this the least recently used screens are freed. */
const cellsMax = 4 * 1024 * 1024;
/** A larger snapshot is not stored while no worker runs; its screen is rendered again from the ring. */
const storedBytesMax = 256 * 1024;
const scrollbackLines = 200;

export class Screens {
  readonly #pool: RenderPool;
  readonly #renderings = new Map<string, Rendering>();
  /** Terminals that have ended. A late request renders them once and frees them again. */
  readonly #forgotten = new WeakSet<ScreenSource>();
  readonly #timers = new Set<ReturnType<typeof setTimeout>>();
  #lastId = 0;
  #isClosed = false;

  constructor(start: StartRenderWorker, idleMs = idleEndMs) {
    this.#pool = new RenderPool(start, idleMs, (worker) => this.#storeSnapshots(worker));
  }

  /** Undefined: not rendered in time. */
  snapshot(source: ScreenSource): Promise<ScreenSnapshot | undefined> {
    const rendering = this.#renderingOf(source);
    return this.#runInTime(async (worker) => {
      const bytes = await this.#renderAndRequest(worker, rendering, command.snapshot);
      return bytes && rendering.progress && { bytes, offset: rendering.progress.to };
    });
  }

  /** Undefined: not rendered in time. */
  screenText(source: ScreenSource): Promise<Screen | undefined> {
    const rendering = this.#renderingOf(source);
    return this.#runInTime(async (worker) => {
      const text = await this.#renderAndRequest(worker, rendering, command.text);
      if (text === undefined || rendering.progress === undefined) return undefined;
      return {
        ...JSON.parse(Buffer.from(text).toString()),
        offset: rendering.progress.to,
      } as Screen;
    });
  }

  /** Call when there is more output. Cheap. */
  onOutput(source: ScreenSource): void {
    const rendering = this.#renderingOf(source);
    if (rendering.isScheduled || !this.#isCurrent(rendering)) return;
    if (source.ring.end - rendering.renderedTo(this.#pool.worker) <= unrenderedBytesMax) return;
    rendering.isScheduled = true;
    this.#renderInBackground(rendering);
  }

  /** Call when the output from here on has another size. */
  onResize(source: ScreenSource): void {
    this.#renderingOf(source).recordSize();
  }

  forget(source: ScreenSource): void {
    this.#forgotten.add(source);
    const rendering = this.#renderings.get(source.key);
    if (rendering?.source !== source) return;
    this.#renderings.delete(source.key);
    this.#enqueueFree(rendering);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    for (const timer of this.#timers) clearTimeout(timer);
    this.#timers.clear();
    this.#renderings.clear();
    await this.#pool.close();
  }

  #renderingOf(source: ScreenSource): Rendering {
    const found = this.#renderings.get(source.key);
    if (found?.source === source) return found;
    if (found !== undefined) this.forget(found.source);
    const rendering = new Rendering(source, this.#lastId++);
    if (!this.#isClosed && !this.#forgotten.has(source))
      this.#renderings.set(source.key, rendering);
    return rendering;
  }

  async #runInTime<T>(task: RenderTask<T>): Promise<T | undefined> {
    let isLate = false;
    const { promise: late, resolve } = Promise.withResolvers<undefined>();
    const timer = setTimeout(() => {
      isLate = true;
      resolve(undefined);
    }, limits.terminalScreenMs);
    try {
      return await Promise.race([this.#pool.run(task, () => !isLate), late]);
    } finally {
      clearTimeout(timer);
    }
  }

  async #renderAndRequest(
    worker: RenderWorker,
    rendering: Rendering,
    kind: typeof command.snapshot | typeof command.text,
  ): Promise<Uint8Array | undefined> {
    await this.#freeCells(worker, rendering);
    const isRendered = await rendering.renderTo(worker, rendering.source.ring.end);
    const response = isRendered ? await rendering.request(worker, { kind }) : undefined;
    if (!this.#isCurrent(rendering)) this.#enqueueFree(rendering);
    return response;
  }

  /** Renders a slice at a time, so that requests get their turn in between. */
  async #renderInBackground(rendering: Rendering): Promise<void> {
    const { source } = rendering;
    const from = rendering.renderedTo(this.#pool.worker);
    if (from < source.ring.start) return this.#checkFloodLater(rendering);
    const isRendered = await this.#renderSome(rendering, from + sliceBytes);
    if (isRendered !== true) return this.#checkFloodLater(rendering);
    if (source.ring.end - rendering.renderedTo(this.#pool.worker) > sliceBytes)
      return this.#renderInBackground(rendering);
    rendering.isScheduled = false;
  }

  #checkFloodLater(rendering: Rendering): void {
    if (!this.#isCurrent(rendering)) return;
    const { ring } = rendering.source;
    const { end } = ring;
    const timer = setTimeout(async () => {
      this.#timers.delete(timer);
      if (ring.end - end > unrenderedBytesMax) return this.#checkFloodLater(rendering);
      await this.#renderSome(rendering, ring.end);
      rendering.isScheduled = false;
    }, floodCheckMs);
    this.#timers.add(timer);
  }

  #renderSome(rendering: Rendering, to: number): Promise<boolean | undefined> {
    return this.#pool.run(
      async (worker) => {
        await this.#freeCells(worker, rendering);
        return rendering.renderTo(worker, Math.min(to, rendering.source.ring.end));
      },
      () => this.#isCurrent(rendering),
    );
  }

  #isCurrent(rendering: Rendering): boolean {
    return this.#renderings.get(rendering.source.key) === rendering;
  }

  /** Before the worker ends: output from before the ring exists only on its screens. */
  async #storeSnapshots(worker: RenderWorker): Promise<void> {
    for (const rendering of this.#renderings.values()) {
      if (rendering.progress?.by !== worker || rendering.progress.to === 0) continue;
      const { to } = rendering.progress;
      const bytes = await rendering.request(worker, { kind: command.snapshot });
      const isStored = bytes !== undefined && bytes.length <= storedBytesMax;
      rendering.stored = isStored ? { bytes: bytes.slice(), to } : undefined;
    }
  }

  /** Frees the least recently used screens until `rendering` fits. */
  async #freeCells(worker: RenderWorker, rendering: Rendering): Promise<void> {
    rendering.usedAt = performance.now();
    const others = [...this.#renderings.values()]
      .filter((other) => other !== rendering && other.progress?.by === worker)
      .sort((a, b) => a.usedAt - b.usedAt);
    let cells = [rendering, ...others].reduce((sum, next) => sum + cellsOf(next), 0);
    for (const other of others) {
      if (cells <= cellsMax) return;
      cells -= cellsOf(other);
      await this.#free(worker, other);
    }
  }

  #enqueueFree(rendering: Rendering): void {
    this.#pool.run(
      (worker) => this.#free(worker, rendering),
      () => rendering.progress !== undefined && rendering.progress.by === this.#pool.worker,
    );
  }

  async #free(worker: RenderWorker, rendering: Rendering): Promise<true> {
    if (rendering.progress?.by === worker) await rendering.request(worker, { kind: command.free });
    rendering.progress = undefined;
    return true;
  }
}

function cellsOf({ source }: Rendering): number {
  return source.size.cols * (source.size.rows + scrollbackLines);
}
