/**
 * Owns drawing one terminal's output as far as it goes: in slices, each size at its place, and what to do where the ring
 * has overtaken the drawing. Does not own when that is done (screens.ts). Each function answers whether it came to its
 * end: it does not where the process has ended or has lost the terminal.
 */

import type { DrawingProcess } from "./render-client.ts";
import { order } from "./render-protocol.ts";
import type { Track } from "./render-state.ts";

/** Drawn at once: some 10 ms of work. */
export const sliceBytes = 256 * 1024;

/** Up to an offset at least. */
export async function catchUp(drawer: DrawingProcess, track: Track, to: number): Promise<boolean> {
  if (track.drawn?.by !== drawer && !(await beginAgain(drawer, track))) return false;
  const { source } = track;
  while (track.drawn !== undefined && track.drawn.to < to) {
    const { to: at } = track.drawn;
    if (at < source.start) return drawCopy(drawer, track);
    const bytes = source.read(at, Math.min(to, at + sliceBytes));
    if (!(await write(drawer, track, bytes))) return false;
  }
  return fitSize(drawer, track);
}

/** From the kept screen where that still leads to the ring, else from the ring's beginning. */
async function beginAgain(drawer: DrawingProcess, track: Track): Promise<boolean> {
  const { kept, source } = track;
  track.kept = undefined;
  if (kept === undefined || kept.to < source.start) return beginAt(drawer, track, source.start);
  if (!(await beginAt(drawer, track, kept.to))) return false;
  for (let at = 0; at < kept.picture.length; at += sliceBytes) {
    const bytes = kept.picture.subarray(at, at + sliceBytes);
    if (!(await did(drawer, track, { kind: order.write, bytes }))) return false;
  }
  return true;
}

async function beginAt(drawer: DrawingProcess, track: Track, from: number): Promise<boolean> {
  const size = track.sizeAt(from);
  track.drawn = { by: drawer, from, to: from, size };
  return did(drawer, track, { kind: order.begin, ...size });
}

/** Output comes faster than it is drawn: what there is now is taken at once, so that drawing it comes to an end. */
async function drawCopy(drawer: DrawingProcess, track: Track): Promise<boolean> {
  const { start, end } = track.source;
  const copy = track.source.read(start, end).slice();
  if (!(await beginAt(drawer, track, start))) return false;
  for (let at = 0; at < copy.length; at += sliceBytes) {
    if (!(await write(drawer, track, copy.subarray(at, at + sliceBytes)))) return false;
  }
  return fitSize(drawer, track);
}

/** What follows on what is drawn. */
async function write(drawer: DrawingProcess, track: Track, bytes: Uint8Array): Promise<boolean> {
  for (let at = 0; at < bytes.length; ) {
    if (!(await fitSize(drawer, track)) || track.drawn === undefined) return false;
    const untilNext = track.nextSizeAt(track.drawn.to) - track.drawn.to;
    const part = bytes.subarray(at, Math.min(bytes.length, at + untilNext));
    if (!(await did(drawer, track, { kind: order.write, bytes: part }))) return false;
    track.drawn.to += part.length;
    at += part.length;
  }
  return true;
}

async function fitSize(drawer: DrawingProcess, track: Track): Promise<boolean> {
  if (track.drawn === undefined) return false;
  const { cols, rows } = track.sizeAt(track.drawn.to);
  const { size } = track.drawn;
  if (size.cols === cols && size.rows === rows) return true;
  track.drawn.size = { cols, rows };
  return did(drawer, track, { kind: order.resize, cols, rows });
}

type Ask = Omit<Parameters<DrawingProcess["ask"]>[0], "terminal">;

async function did(drawer: DrawingProcess, track: Track, ask: Ask): Promise<boolean> {
  return (await asked(drawer, track, ask)) !== undefined;
}

/** Undefined: the process has ended, or knows nothing of this terminal. */
export async function asked(
  drawer: DrawingProcess,
  track: Track,
  ask: Ask,
): Promise<Uint8Array | undefined> {
  const answer = await drawer.ask({ ...ask, terminal: track.id });
  if (answer?.known) return answer.bytes;
  track.drawn = undefined;
  return undefined;
}
