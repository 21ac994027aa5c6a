/**
 * Collects what tests compare of two screens: each cell, the cursor, modes, margins, and what a program saved.
 */

import type { IBuffer, IBufferLine } from "@xterm/headless";
import {
  attributesSequence,
  backgroundSequence,
  isVisibleWhenBlank,
} from "../../../container/agent/terminals/screen/attributes.ts";
import type { Emulator } from "../../../container/agent/terminals/screen/emulator.ts";
import { isWideCellIntact } from "../../../container/agent/terminals/screen/lines.ts";
import {
  type Attributes,
  type BufferInternals,
  type Cell,
  charsetCode,
  internalsOf,
  type XtermInternals,
} from "../../../container/agent/terminals/screen/xterm-internals.ts";

export function stateOf({ terminal }: Emulator) {
  const internals = internalsOf(terminal);
  const { active, normal, alternate } = terminal.buffer;
  const isAlternate = active.type === "alternate";
  return {
    type: active.type,
    normal: linesOf(normal, terminal.cols),
    alternate: isAlternate ? linesOf(alternate, terminal.cols) : [],
    normalState: bufferState(internals.buffers.normal, terminal.cols),
    alternateState: isAlternate ? bufferState(internals.buffers.alt, terminal.cols) : undefined,
    cursor: [internals.buffers.active.x, internals.buffers.active.y],
    style: attributesSequence(internals._inputHandler._curAttrData),
    modes: { ...terminal.modes, synchronizedOutputMode: false },
    ...modesOf(internals),
  };
}

function modesOf({
  coreService,
  coreMouseService,
  optionsService,
  _charsetService,
}: XtermInternals) {
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

function bufferState(
  { ybase, scrollTop, scrollBottom, savedX, savedY, ...more }: BufferInternals,
  cols: number,
) {
  const { tabs, savedCharset, savedCurAttrData } = more;
  return {
    margins: [scrollTop, scrollBottom],
    // A tab stop behind the last column has no effect.
    tabs: Object.keys(tabs).filter((x) => tabs[Number(x)] && Number(x) < cols),
    // A cursor saved behind the last column is restored in it.
    saved: [Math.min(savedX, cols - 1), Math.max(0, savedY - ybase), charsetCode(savedCharset)],
    savedColours: withoutUnderline(savedCurAttrData),
  };
}

/** The emulator saves only a part of the underline style. */
function withoutUnderline(attributes: Attributes): string {
  return backgroundSequence(attributes);
}

function linesOf(buffer: IBuffer, cols: number) {
  return Array.from({ length: buffer.length }, (_, y) => {
    const line = buffer.getLine(y);
    return Array.from({ length: cols }, (_, x) => cellOf(line, x));
  });
}

/** What is visible: nothing, half of a wide character and a space look the same. */
function cellOf(line: IBufferLine | undefined, x: number): string {
  const cell = line?.getCell(x) as Cell | undefined;
  if (cell === undefined) return "none";
  const chars = cell.getChars();
  if (chars === "" && cell.getWidth() === 0) return "behind";
  const isHalf = line !== undefined && cell.getWidth() > 1 && !isWideCellIntact(line, x);
  const isNothing = chars === "" || chars === " " || isHalf;
  const colours =
    isNothing && !isVisibleWhenBlank(cell) ? backgroundSequence(cell) : attributesSequence(cell);
  return `${isNothing ? " " : chars} ${colours.slice(1)}`;
}
