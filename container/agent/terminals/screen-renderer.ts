/**
 * Says what a terminal needs from a renderer of screens, and what a viewer gets if none can render in time.
 */
import type { Screen } from "../../../src/protocol/terminal.ts";
import type { Ring } from "./ring.ts";

/** A terminal's output and size, as the renderer needs them. */
export interface ScreenSource {
  readonly key: string;
  readonly cols: number;
  readonly rows: number;
  /** The oldest offset in the ring. */
  readonly start: number;
  /** The offset after the newest byte. */
  readonly end: number;
  read(from: number, to: number): Uint8Array;
}

/** Bytes that show the screen on a fresh terminal, and the offset of the output that it stands for. */
export type ScreenSnapshot = { bytes: Uint8Array; offset: number };

export interface ScreenRenderer {
  /** Undefined: not rendered in time. */
  snapshot(source: ScreenSource): Promise<ScreenSnapshot | undefined>;
  /** Undefined: not rendered in time. */
  screenText(source: ScreenSource): Promise<Screen | undefined>;
  /** There is more output. */
  onOutput(source: ScreenSource): void;
  /** The output from here on has another size. */
  onResize(source: ScreenSource): void;
  forget(source: ScreenSource): void;
  close(): Promise<void>;
}

const resetTerminal = Buffer.from("\x1bc");
const tailBytes = 64 * 1024;

/** Stands for a screen that could not be rendered: the newest output on a reset terminal. */
export function tailSnapshot(ring: Ring): ScreenSnapshot {
  const tail = ring.read(Math.max(ring.start, ring.end - tailBytes), ring.end);
  return { bytes: Buffer.concat([resetTerminal, tail]), offset: ring.end };
}
