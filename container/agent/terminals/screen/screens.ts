/**
 * Owns the screens of the agent's terminals: drawn when somebody asks, or when much has not been drawn.
 * Does not own the output (the rings of terminals/), the process that draws (studio.ts) nor how (emulator.ts).
 * Whoever asks waits for a limited time; to tell of output costs nothing.
 */
import { limits } from "../../../../src/protocol/limits.ts";
import type { Screen } from "../../../../src/protocol/terminal.ts";
import type { DrawingProcess, StartDrawer } from "./render-client.ts";
import { Studio, type Work } from "./render-pool.ts";
import { asked, catchUp, sliceBytes } from "./render-progress.ts";
import { order } from "./render-protocol.ts";
import { type ScreenSource, Track } from "./render-state.ts";

export type { ScreenSource } from "./render-state.ts";

/** More than this undrawn, and drawing begins without being asked: what the ring then loses is on the screen. */
const undrawnBytesMax = limits.terminalRingBytes / 2;
/** Nothing is gained by drawing what comes faster than it can be drawn: looked at again after this. */
const floodLookMs = 2000;
const restAfterMs = 60_000;
/** Each cell is some bytes of the process that draws: beyond this the screen that was drawn longest ago is let go. */
const cellsMax = 4 * 1024 * 1024;
/** A screen that is kept while nobody draws; a larger one is drawn again from the ring. */
const keptBytesMax = 256 * 1024;
const linesAbove = 200;

export class Screens {
  readonly #studio: Studio;
  readonly #tracks = new Map<string, Track>();
  /** Those that are asked for once more are drawn for that, and let go. */
  readonly #forgotten = new WeakSet<ScreenSource>();
  readonly #waits = new Set<ReturnType<typeof setTimeout>>();
  #ids = 0;
  #isClosed = false;

  constructor(start: StartDrawer, idleMs = restAfterMs) {
    this.#studio = new Studio(start, idleMs, (drawer) => this.#keepAll(drawer));
  }

  /** Undefined: it could not be drawn in time. */
  picture(source: ScreenSource): Promise<{ picture: Uint8Array; offset: number } | undefined> {
    const track = this.#track(source);
    return this.#inTime(async (drawer) => {
      const picture = await this.#asked(drawer, track, order.picture);
      return picture && track.drawn && { picture, offset: track.drawn.to };
    });
  }

  /** Undefined: it could not be drawn in time. */
  look(source: ScreenSource): Promise<Screen | undefined> {
    const track = this.#track(source);
    return this.#inTime(async (drawer) => {
      const look = await this.#asked(drawer, track, order.look);
      if (look === undefined || track.drawn === undefined) return undefined;
      return { ...JSON.parse(Buffer.from(look).toString()), offset: track.drawn.to } as Screen;
    });
  }

  /** There is more. */
  written(source: ScreenSource): void {
    const track = this.#track(source);
    if (track.isPlanned || !this.#isCurrent(track)) return;
    if (source.end - track.position(this.#studio.drawer) <= undrawnBytesMax) return;
    track.isPlanned = true;
    this.#drawAlong(track);
  }

  resized(source: ScreenSource): void {
    this.#track(source).resized();
  }

  forget(source: ScreenSource): void {
    this.#forgotten.add(source);
    const track = this.#tracks.get(source.key);
    if (track?.source !== source) return;
    this.#tracks.delete(source.key);
    this.#freeLater(track);
  }

  /** Whether a process that draws runs now. */
  get isDrawing(): boolean {
    return this.#studio.drawer !== undefined;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    for (const wait of this.#waits) clearTimeout(wait);
    this.#waits.clear();
    this.#tracks.clear();
    await this.#studio.close();
  }

  #track(source: ScreenSource): Track {
    const found = this.#tracks.get(source.key);
    if (found?.source === source) return found;
    if (found !== undefined) this.forget(found.source);
    const track = new Track(source, this.#ids++);
    if (!this.#isClosed && !this.#forgotten.has(source)) this.#tracks.set(source.key, track);
    return track;
  }

  async #inTime<T>(work: Work<T>): Promise<T | undefined> {
    let isLate = false;
    const { promise: late, resolve } = Promise.withResolvers<undefined>();
    const limit = setTimeout(() => {
      isLate = true;
      resolve(undefined);
    }, limits.terminalScreenMs);
    try {
      return await Promise.race([this.#studio.work(work, () => !isLate), late]);
    } finally {
      clearTimeout(limit);
    }
  }

  async #asked(
    drawer: DrawingProcess,
    track: Track,
    kind: typeof order.picture | typeof order.look,
  ): Promise<Uint8Array | undefined> {
    await this.#makeRoom(drawer, track);
    const isDrawn = await catchUp(drawer, track, track.source.end);
    const answer = isDrawn ? await asked(drawer, track, { kind }) : undefined;
    if (!this.#isCurrent(track)) this.#freeLater(track);
    return answer;
  }

  /** A slice at a time, so that whoever asks meanwhile has a turn in between. */
  async #drawAlong(track: Track): Promise<void> {
    const { source } = track;
    const from = track.position(this.#studio.drawer);
    if (from < source.start) return this.#lookLater(track);
    const isDrawn = await this.#drawSome(track, from + sliceBytes);
    if (isDrawn !== true) return this.#lookLater(track);
    if (source.end - track.position(this.#studio.drawer) > sliceBytes)
      return this.#drawAlong(track);
    track.isPlanned = false;
  }

  #lookLater(track: Track): void {
    if (!this.#isCurrent(track)) return;
    const { end } = track.source;
    const wait = setTimeout(async () => {
      this.#waits.delete(wait);
      if (track.source.end - end > undrawnBytesMax) return this.#lookLater(track);
      await this.#drawSome(track, track.source.end);
      track.isPlanned = false;
    }, floodLookMs);
    this.#waits.add(wait);
  }

  #drawSome(track: Track, to: number): Promise<boolean | undefined> {
    return this.#studio.work(
      async (drawer) => {
        await this.#makeRoom(drawer, track);
        return catchUp(drawer, track, Math.min(to, track.source.end));
      },
      () => this.#isCurrent(track),
    );
  }

  #isCurrent(track: Track): boolean {
    return this.#tracks.get(track.source.key) === track;
  }

  /** Their output before the ring would be lost with the process that drew it. */
  async #keepAll(drawer: DrawingProcess): Promise<void> {
    for (const track of this.#tracks.values()) {
      if (track.drawn?.by !== drawer || track.drawn.to === 0) continue;
      const { to } = track.drawn;
      const picture = await asked(drawer, track, { kind: order.picture });
      const isKept = picture !== undefined && picture.length <= keptBytesMax;
      track.kept = isKept ? { picture: picture.slice(), to } : undefined;
    }
  }

  async #makeRoom(drawer: DrawingProcess, wanted: Track): Promise<void> {
    wanted.usedAt = performance.now();
    const others = [...this.#tracks.values()]
      .filter((track) => track !== wanted && track.drawn?.by === drawer)
      .sort((one, other) => one.usedAt - other.usedAt);
    let cells = [wanted, ...others].reduce((sum, track) => sum + cellsOf(track), 0);
    for (const track of others) {
      if (cells <= cellsMax) return;
      cells -= cellsOf(track);
      await this.#free(drawer, track);
    }
  }

  #freeLater(track: Track): void {
    this.#studio.work(
      (drawer) => this.#free(drawer, track),
      () => track.drawn !== undefined && track.drawn.by === this.#studio.drawer,
    );
  }

  async #free(drawer: DrawingProcess, track: Track): Promise<true> {
    if (track.drawn?.by === drawer) await asked(drawer, track, { kind: order.free });
    track.drawn = undefined;
    return true;
  }
}

function cellsOf({ source }: Track): number {
  return source.cols * (source.rows + linesAbove);
}
