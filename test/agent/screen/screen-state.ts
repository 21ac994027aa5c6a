/**
 * Owns what is compared of two screens: each cell, the cursor, modes, margins, what a program saved.
 * Does not own how they came about.
 */

import type { IBuffer, IBufferLine } from "@xterm/headless";
import {
  attributesSequence,
  backgroundSequence,
  isSeenAlone,
} from "../../../container/agent/terminals/screen/attributes.ts";
import type { Emulator } from "../../../container/agent/terminals/screen/emulator.ts";
import { isWhole } from "../../../container/agent/terminals/screen/lines.ts";
import {
  type Attributes,
  type Cell,
  charsetCode,
  type Inside,
  type InsideBuffer,
  insideOf,
} from "../../../container/agent/terminals/screen/xterm-internals.ts";

export function stateOf({ terminal }: Emulator) {
  const inside = insideOf(terminal);
  const { active, normal, alternate } = terminal.buffer;
  const isAlternate = active.type === "alternate";
  return {
    type: active.type,
    normal: linesOf(normal, terminal.cols),
    alternate: isAlternate ? linesOf(alternate, terminal.cols) : [],
    aroundNormal: aroundOf(inside.buffers.normal, terminal.cols),
    aroundAlternate: isAlternate ? aroundOf(inside.buffers.alt, terminal.cols) : undefined,
    cursor: [inside.buffers.active.x, inside.buffers.active.y],
    now: attributesSequence(inside._inputHandler._curAttrData),
    modes: { ...terminal.modes, synchronizedOutputMode: false },
    ...modesOf(inside),
  };
}

function modesOf({ coreService, coreMouseService, optionsService, _charsetService }: Inside) {
  const { cursorStyle, cursorBlink } = coreService.decPrivateModes;
  return {
    hidden: coreService.isCursorHidden,
    shape: [cursorStyle, cursorBlink],
    encoding: coreMouseService.activeEncoding,
    newLine: optionsService.rawOptions.convertEol,
    level: _charsetService.glevel,
    charsets: [0, 1, 2, 3].map((index) => charsetCode(_charsetService._charsets[index])),
  };
}

function aroundOf(
  { ybase, scrollTop, scrollBottom, savedX, savedY, ...more }: InsideBuffer,
  cols: number,
) {
  const { tabs, savedCharset, savedCurAttrData } = more;
  return {
    margins: [scrollTop, scrollBottom],
    // One behind the last column stops nobody.
    tabs: Object.keys(tabs).filter((x) => tabs[Number(x)] && Number(x) < cols),
    // One behind the last column comes back in it.
    saved: [Math.min(savedX, cols - 1), Math.max(0, savedY - ybase), charsetCode(savedCharset)],
    savedColours: withoutUnderline(savedCurAttrData),
  };
}

/** The emulator saves a part of how it underlines only. */
function withoutUnderline(attributes: Attributes): string {
  return backgroundSequence(attributes);
}

function linesOf(buffer: IBuffer, cols: number) {
  return Array.from({ length: buffer.length }, (_, y) => {
    const line = buffer.getLine(y);
    return Array.from({ length: cols }, (_, x) => cellOf(line, x));
  });
}

/** What is seen of it: nothing, half of a wide character and a space look alike. */
function cellOf(line: IBufferLine | undefined, x: number): string {
  const cell = line?.getCell(x) as Cell | undefined;
  if (cell === undefined) return "none";
  const chars = cell.getChars();
  if (chars === "" && cell.getWidth() === 0) return "behind";
  const isHalf = line !== undefined && cell.getWidth() > 1 && !isWhole(line, x);
  const isNothing = chars === "" || chars === " " || isHalf;
  const colours =
    isNothing && !isSeenAlone(cell) ? backgroundSequence(cell) : attributesSequence(cell);
  return `${isNothing ? " " : chars} ${colours.slice(1)}`;
}
