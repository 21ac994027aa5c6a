/**
 * Owns what a viewer is shown that cannot be sent all bytes: the screen as it was drawn, else the newest output.
 * Does not own drawing.
 */
import type { Screen } from "../../../src/protocol/terminal.ts";
import type { Ring } from "./ring.ts";
import type { Picture } from "./viewer.ts";

/** A terminal's output and size, as whoever draws it needs them. */
export interface Drawn {
  readonly key: string;
  readonly cols: number;
  readonly rows: number;
  /** The oldest offset that can be read. */
  readonly start: number;
  readonly end: number;
  read(from: number, to: number): Uint8Array;
}

/** Undefined: it could not be drawn in time. */
export interface Drawer {
  picture(source: Drawn): Promise<Picture | undefined>;
  look(source: Drawn): Promise<Screen | undefined>;
  /** There is more. */
  written(source: Drawn): void;
  /** From here on it has another size. */
  resized(source: Drawn): void;
  forget(source: Drawn): void;
  close(): Promise<void>;
}

const resetTerminal = Buffer.from("\x1bc");
const tailBytes = 64 * 1024;

export function tailOf(ring: Ring): Picture {
  const tail = ring.read(Math.max(ring.start, ring.end - tailBytes), ring.end);
  return { picture: Buffer.concat([resetTerminal, tail]), offset: ring.end };
}
