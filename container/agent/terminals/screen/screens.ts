/**
 * Renders the screens of the agent's terminals, on request and in the background before output leaves the ring.
 * A request waits for a limited time; `onOutput` is cheap.
 */
import { limits } from "../../../../src/protocol/limits.ts";
import type { Screen } from "../../../../src/protocol/terminal.ts";
import type { ScreenRenderer, ScreenSnapshot, ScreenSource } from "../screen-renderer.ts";
import type { RenderWorker, StartRenderWorker } from "./render-client.ts";
import { RenderPool, type RenderTask } from "./render-pool.ts";
import { renderTo, request, sliceBytes } from "./render-progress.ts";
import { command } from "./render-protocol.ts";
import { RenderState } from "./render-state.ts";

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

export class Screens implements ScreenRenderer {
  readonly #pool: RenderPool;
  readonly #states = new Map<string, RenderState>();
  /** Terminals that have ended. A late request renders them once and frees them again. */
  readonly #forgotten = new WeakSet<ScreenSource>();
  readonly #timers = new Set<ReturnType<typeof setTimeout>>();
  #lastId = 0;
  #isClosed = false;

  constructor(start: StartRenderWorker, idleMs = idleEndMs) {
    this.#pool = new RenderPool(start, idleMs, (worker) => this.#storeSnapshots(worker));
  }

  snapshot(source: ScreenSource): Promise<ScreenSnapshot | undefined> {
    const state = this.#stateOf(source);
    return this.#runInTime(async (worker) => {
      const bytes = await this.#renderAndRequest(worker, state, command.snapshot);
      return bytes && state.rendering && { bytes, offset: state.rendering.to };
    });
  }

  screenText(source: ScreenSource): Promise<Screen | undefined> {
    const state = this.#stateOf(source);
    return this.#runInTime(async (worker) => {
      const text = await this.#renderAndRequest(worker, state, command.text);
      if (text === undefined || state.rendering === undefined) return undefined;
      return { ...JSON.parse(Buffer.from(text).toString()), offset: state.rendering.to } as Screen;
    });
  }

  onOutput(source: ScreenSource): void {
    const state = this.#stateOf(source);
    if (state.isScheduled || !this.#isCurrent(state)) return;
    if (source.end - state.renderedTo(this.#pool.worker) <= unrenderedBytesMax) return;
    state.isScheduled = true;
    this.#renderInBackground(state);
  }

  onResize(source: ScreenSource): void {
    this.#stateOf(source).recordSize();
  }

  forget(source: ScreenSource): void {
    this.#forgotten.add(source);
    const state = this.#states.get(source.key);
    if (state?.source !== source) return;
    this.#states.delete(source.key);
    this.#enqueueFree(state);
  }

  /** Whether a render worker runs now. */
  get isRendering(): boolean {
    return this.#pool.worker !== undefined;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    for (const timer of this.#timers) clearTimeout(timer);
    this.#timers.clear();
    this.#states.clear();
    await this.#pool.close();
  }

  #stateOf(source: ScreenSource): RenderState {
    const found = this.#states.get(source.key);
    if (found?.source === source) return found;
    if (found !== undefined) this.forget(found.source);
    const state = new RenderState(source, this.#lastId++);
    if (!this.#isClosed && !this.#forgotten.has(source)) this.#states.set(source.key, state);
    return state;
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
    state: RenderState,
    kind: typeof command.snapshot | typeof command.text,
  ): Promise<Uint8Array | undefined> {
    await this.#freeCells(worker, state);
    const isRendered = await renderTo(worker, state, state.source.end);
    const response = isRendered ? await request(worker, state, { kind }) : undefined;
    if (!this.#isCurrent(state)) this.#enqueueFree(state);
    return response;
  }

  /** Renders a slice at a time, so that requests get their turn in between. */
  async #renderInBackground(state: RenderState): Promise<void> {
    const { source } = state;
    const from = state.renderedTo(this.#pool.worker);
    if (from < source.start) return this.#checkFloodLater(state);
    const isRendered = await this.#renderSome(state, from + sliceBytes);
    if (isRendered !== true) return this.#checkFloodLater(state);
    if (source.end - state.renderedTo(this.#pool.worker) > sliceBytes)
      return this.#renderInBackground(state);
    state.isScheduled = false;
  }

  #checkFloodLater(state: RenderState): void {
    if (!this.#isCurrent(state)) return;
    const { end } = state.source;
    const timer = setTimeout(async () => {
      this.#timers.delete(timer);
      if (state.source.end - end > unrenderedBytesMax) return this.#checkFloodLater(state);
      await this.#renderSome(state, state.source.end);
      state.isScheduled = false;
    }, floodCheckMs);
    this.#timers.add(timer);
  }

  #renderSome(state: RenderState, to: number): Promise<boolean | undefined> {
    return this.#pool.run(
      async (worker) => {
        await this.#freeCells(worker, state);
        return renderTo(worker, state, Math.min(to, state.source.end));
      },
      () => this.#isCurrent(state),
    );
  }

  #isCurrent(state: RenderState): boolean {
    return this.#states.get(state.source.key) === state;
  }

  /** Before the worker ends: output from before the ring exists only on its screens. */
  async #storeSnapshots(worker: RenderWorker): Promise<void> {
    for (const state of this.#states.values()) {
      if (state.rendering?.by !== worker || state.rendering.to === 0) continue;
      const { to } = state.rendering;
      const bytes = await request(worker, state, { kind: command.snapshot });
      const isStored = bytes !== undefined && bytes.length <= storedBytesMax;
      state.stored = isStored ? { bytes: bytes.slice(), to } : undefined;
    }
  }

  /** Frees the least recently used screens until `state` fits. */
  async #freeCells(worker: RenderWorker, state: RenderState): Promise<void> {
    state.usedAt = performance.now();
    const others = [...this.#states.values()]
      .filter((other) => other !== state && other.rendering?.by === worker)
      .sort((a, b) => a.usedAt - b.usedAt);
    let cells = [state, ...others].reduce((sum, next) => sum + cellsOf(next), 0);
    for (const other of others) {
      if (cells <= cellsMax) return;
      cells -= cellsOf(other);
      await this.#free(worker, other);
    }
  }

  #enqueueFree(state: RenderState): void {
    this.#pool.run(
      (worker) => this.#free(worker, state),
      () => state.rendering !== undefined && state.rendering.by === this.#pool.worker,
    );
  }

  async #free(worker: RenderWorker, state: RenderState): Promise<true> {
    if (state.rendering?.by === worker) await request(worker, state, { kind: command.free });
    state.rendering = undefined;
    return true;
  }
}

function cellsOf({ source }: RenderState): number {
  return source.cols * (source.rows + scrollbackLines);
}
