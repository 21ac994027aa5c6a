/**
 * Serializes a screen: bytes that give a fresh terminal of the same size the same cells, cursor and modes.
 *
 * The serializer that comes with the emulator loses colours while the alternate screen is up, margins, charsets, tabs,
 * a hidden cursor, and the cursor behind the last column.
 */
import type { IBuffer, Terminal } from "@xterm/headless";
import { attributesSequence, plain } from "./attributes.ts";
import { isWideCellIntact, LineSerializer } from "./lines.ts";
import { type BufferInternals, type Cell, charsetCode, internalsOf } from "./xterm-internals.ts";

type Detail = { scrollback: boolean; colours: boolean };

const tabEvery = 8;

export function serializeScreen(terminal: Terminal, title: string, detail: Detail): string {
  const { buffers } = internalsOf(terminal);
  const { active, normal, alternate } = terminal.buffer;
  const isAlternate = active.type === "alternate";
  return [
    "\x1bc",
    title === "" ? "" : `\x1b]2;${title}\x07`,
    isAlternate ? "" : savedInAlternate(buffers.alt),
    screen(terminal, normal, buffers.normal, detail),
    isAlternate ? `${plain}\x1b[?47h\x1b[H` : "",
    isAlternate ? screen(terminal, alternate, buffers.alt, detail) : "",
    modes(terminal),
    cursor(terminal),
  ].join("");
}

function screen(
  terminal: Terminal,
  buffer: IBuffer,
  inside: BufferInternals,
  detail: Detail,
): string {
  const first = detail.scrollback ? 0 : Math.max(0, buffer.length - terminal.rows);
  return [
    new LineSerializer(buffer, terminal.cols, detail.colours).serialize(first),
    tabs(terminal.cols, inside),
    saved(inside),
    margins(terminal.rows, inside),
  ].join("");
}

/** A program may restore this cursor without saving one first. */
function savedInAlternate(inside: BufferInternals): string {
  const isUntouched =
    inside.savedX === 0 && inside.savedY === 0 && inside.savedCharset === undefined;
  return isUntouched ? "" : `\x1b[?47h${saved(inside)}\x1b[?47l${plain}\x1b[H`;
}

function saved(inside: BufferInternals): string {
  const y = Math.max(0, inside.savedY - inside.ybase);
  const code = charsetCode(inside.savedCharset);
  const position = `\x1b[${y + 1};${inside.savedX + 1}H${attributesSequence(inside.savedCurAttrData)}`;
  return code === "B" ? `${position}\x1b7` : `${position}\x1b(${code}\x1b7\x1b(B`;
}

function tabs(cols: number, { tabs: stops }: BufferInternals): string {
  const isStop = (x: number) => stops[x] === true;
  const all = Array.from({ length: cols }, (_, x) => x);
  if (all.every((x) => isStop(x) === (x % tabEvery === 0))) return "";
  return `\x1b[3g${all
    .filter(isStop)
    .map((x) => `\x1b[1;${x + 1}H\x1bH`)
    .join("")}`;
}

function margins(rows: number, { scrollTop, scrollBottom }: BufferInternals): string {
  if (scrollTop === 0 && scrollBottom === rows - 1) return "";
  return `\x1b[${scrollTop + 1};${scrollBottom + 1}r`;
}

const mouse = { none: "", x10: 9, vt200: 1000, drag: 1002, any: 1003 } as const;
const cursorShapes = { block: 2, underline: 4, bar: 6 } as const;

function modes(terminal: Terminal): string {
  const { modes: on } = terminal;
  const { coreService, coreMouseService, optionsService } = internalsOf(terminal);
  const { cursorStyle, cursorBlink } = coreService.decPrivateModes;
  const encoding = coreMouseService.activeEncoding;
  const shape = cursorStyle === undefined ? 0 : cursorShapes[cursorStyle] - (cursorBlink ? 1 : 0);
  return [
    on.applicationCursorKeysMode ? "\x1b[?1h" : "",
    on.applicationKeypadMode ? "\x1b=" : "",
    on.bracketedPasteMode ? "\x1b[?2004h" : "",
    on.reverseWraparoundMode ? "\x1b[?45h" : "",
    on.sendFocusMode ? "\x1b[?1004h" : "",
    on.wraparoundMode ? "" : "\x1b[?7l",
    on.mouseTrackingMode === "none" ? "" : `\x1b[?${mouse[on.mouseTrackingMode]}h`,
    encoding === "SGR" ? "\x1b[?1006h" : encoding === "SGR_PIXELS" ? "\x1b[?1016h" : "",
    shape === 0 ? "" : `\x1b[${shape} q`,
    // A reset does not change these two.
    coreService.isCursorHidden ? "\x1b[?25l" : "\x1b[?25h",
    optionsService.rawOptions.convertEol ? "\x1b[20h" : "\x1b[20l",
    on.originMode ? "\x1b[?6h" : "",
    on.insertMode ? "\x1b[4h" : "",
  ].join("");
}

/** The character sets in use. After a restore, a program may use another one than it chose. */
function charsets(terminal: Terminal): { sequence: string; restores: boolean } {
  const { buffers, _charsetService: service } = internalsOf(terminal);
  const slots = [0, 1, 2, 3].map((index) => charsetCode(service._charsets[index]));
  const used = charsetCode(service.charset);
  const isOther = used !== slots[service.glevel];
  const restores = isOther && used === "B" && charsetCode(buffers.active.savedCharset) === "B";
  if (isOther && !restores) slots[service.glevel] = used;
  const sequence = [
    ...slots.map((code, index) => (code === "B" ? "" : `\x1b${"()*+"[index]}${code}`)),
    ["", "\x0e", "\x1bn", "\x1bo"][service.glevel] ?? "",
    restores ? "\x1b8" : "",
  ].join("");
  return { sequence, restores };
}

/** Comes last, because nothing may move the cursor afterwards, and the next output may join the previous character. */
function cursor(terminal: Terminal): string {
  const { sequence, restores } = charsets(terminal);
  const joins = internalsOf(terminal)._inputHandler._parser.precedingJoinState !== 0;
  // The last character must not be written in a set that was chosen after it.
  return joins || restores
    ? sequence + cursorPosition(terminal, joins)
    : cursorPosition(terminal, joins) + sequence;
}

function cursorPosition(terminal: Terminal, joins: boolean): string {
  const { buffers, _inputHandler: handler } = internalsOf(terminal);
  const { x, y, ybase, scrollTop } = buffers.active;
  const row = terminal.modes.originMode ? y - scrollTop : y;
  const to = (column: number) => `\x1b[${Math.max(0, row) + 1};${column + 1}H`;
  const style = attributesSequence(handler._curAttrData);
  const isPastEnd = x >= terminal.cols;
  if (x === 0 || !(isPastEnd || joins)) return `${to(x)}${style}`;
  // Only writing a character moves the cursor there.
  const line = terminal.buffer.active.getLine(ybase + y);
  const column = x > 1 && line !== undefined && isWideCellIntact(line, x - 2) ? x - 2 : x - 1;
  const last = line?.getCell(column) as Cell | undefined;
  const width = Math.max(1, last?.getWidth() ?? 1);
  if (last === undefined || column + width !== x) {
    return `${to(Math.min(x, terminal.cols - 1))}${style}`;
  }
  if (last.getChars() === "" && !isPastEnd) return `${to(x)}${style}`;
  const own = attributesSequence(last);
  // In insert mode the character would be inserted next to itself.
  const gap = terminal.modes.insertMode ? `\x1b[${width}P` : "";
  return `${to(column)}${own}${gap}${last.getChars() || " "}${own === style ? "" : style}`;
}
