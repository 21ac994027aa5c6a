/**
 * Owns the picture of a screen: bytes that give a fresh terminal of the same size the same cells, cursor and modes,
 * so that it goes on alike. Does not own bytes that stand within a sequence (unfinished.ts), nor lines (lines.ts).
 *
 * Not the serializer that comes with the emulator: that one loses colours when the alternate screen is up, margins,
 * charsets, tabs, a hidden cursor, and the cursor behind the last column.
 */
import type { IBuffer, Terminal } from "@xterm/headless";
import { attributesSequence, plain } from "./attributes.ts";
import { isWhole, Lines } from "./lines.ts";
import { type Cell, charsetCode, type InsideBuffer, insideOf } from "./xterm-internals.ts";

export type Detail = { scrollback: boolean; colours: boolean };

const tabEvery = 8;

export function drawPicture(terminal: Terminal, title: string, detail: Detail): string {
  const { buffers } = insideOf(terminal);
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

function screen(terminal: Terminal, buffer: IBuffer, inside: InsideBuffer, detail: Detail): string {
  const first = detail.scrollback ? 0 : Math.max(0, buffer.length - terminal.rows);
  return [
    new Lines(buffer, terminal.cols, detail.colours).say(first),
    tabs(terminal.cols, inside),
    saved(inside),
    margins(terminal.rows, inside),
  ].join("");
}

/** A program may go back to it without having saved anew. */
function savedInAlternate(inside: InsideBuffer): string {
  const isUntouched =
    inside.savedX === 0 && inside.savedY === 0 && inside.savedCharset === undefined;
  return isUntouched ? "" : `\x1b[?47h${saved(inside)}\x1b[?47l${plain}\x1b[H`;
}

function saved(inside: InsideBuffer): string {
  const y = Math.max(0, inside.savedY - inside.ybase);
  const code = charsetCode(inside.savedCharset);
  const position = `\x1b[${y + 1};${inside.savedX + 1}H${attributesSequence(inside.savedCurAttrData)}`;
  return code === "B" ? `${position}\x1b7` : `${position}\x1b(${code}\x1b7\x1b(B`;
}

function tabs(cols: number, { tabs: stops }: InsideBuffer): string {
  const isStop = (x: number) => stops[x] === true;
  const all = Array.from({ length: cols }, (_, x) => x);
  if (all.every((x) => isStop(x) === (x % tabEvery === 0))) return "";
  return `\x1b[3g${all
    .filter(isStop)
    .map((x) => `\x1b[1;${x + 1}H\x1bH`)
    .join("")}`;
}

function margins(rows: number, { scrollTop, scrollBottom }: InsideBuffer): string {
  if (scrollTop === 0 && scrollBottom === rows - 1) return "";
  return `\x1b[${scrollTop + 1};${scrollBottom + 1}r`;
}

const mouse = { none: "", x10: 9, vt200: 1000, drag: 1002, any: 1003 } as const;
const cursorShapes = { block: 2, underline: 4, bar: 6 } as const;

function modes(terminal: Terminal): string {
  const { modes: on } = terminal;
  const { coreService, coreMouseService, optionsService } = insideOf(terminal);
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
    // A reset leaves these two as they were.
    coreService.isCursorHidden ? "\x1b[?25l" : "\x1b[?25h",
    optionsService.rawOptions.convertEol ? "\x1b[20h" : "\x1b[20l",
    on.originMode ? "\x1b[?6h" : "",
    on.insertMode ? "\x1b[4h" : "",
  ].join("");
}

/** Which sets of characters are in use; by restoring, a program can have another than the one it chose. */
function charsets(terminal: Terminal): { said: string; restores: boolean } {
  const { buffers, _charsetService: service } = insideOf(terminal);
  const slots = [0, 1, 2, 3].map((index) => charsetCode(service._charsets[index]));
  const used = charsetCode(service.charset);
  const isOther = used !== slots[service.glevel];
  const restores = isOther && used === "B" && charsetCode(buffers.active.savedCharset) === "B";
  if (isOther && !restores) slots[service.glevel] = used;
  const said = [
    ...slots.map((code, index) => (code === "B" ? "" : `\x1b${"()*+"[index]}${code}`)),
    ["", "\x0e", "\x1bn", "\x1bo"][service.glevel] ?? "",
    restores ? "\x1b8" : "",
  ].join("");
  return { said, restores };
}

/** Last: nothing after it may move the cursor, and what comes next may join the character before it. */
function cursor(terminal: Terminal): string {
  const { said, restores } = charsets(terminal);
  const joins = insideOf(terminal)._inputHandler._parser.precedingJoinState !== 0;
  // What was written before its set was chosen must not be written in that set.
  return joins || restores ? said + place(terminal, joins) : place(terminal, joins) + said;
}

function place(terminal: Terminal, joins: boolean): string {
  const { buffers, _inputHandler: handler } = insideOf(terminal);
  const { x, y, ybase, scrollTop } = buffers.active;
  const row = terminal.modes.originMode ? y - scrollTop : y;
  const to = (column: number) => `\x1b[${Math.max(0, row) + 1};${column + 1}H`;
  const now = attributesSequence(handler._curAttrData);
  const isBehind = x >= terminal.cols;
  if (x === 0 || !(isBehind || joins)) return `${to(x)}${now}`;
  // Only a character that is written takes the cursor there.
  const line = terminal.buffer.active.getLine(ybase + y);
  const at = x > 1 && line !== undefined && isWhole(line, x - 2) ? x - 2 : x - 1;
  const last = line?.getCell(at) as Cell | undefined;
  const width = Math.max(1, last?.getWidth() ?? 1);
  if (last === undefined || at + width !== x) {
    return `${to(Math.min(x, terminal.cols - 1))}${now}`;
  }
  if (last.getChars() === "" && !isBehind) return `${to(x)}${now}`;
  const own = attributesSequence(last);
  // Written in insert mode it would push itself along.
  const gap = terminal.modes.insertMode ? `\x1b[${width}P` : "";
  return `${to(at)}${own}${gap}${last.getChars() || " "}${own === now ? "" : now}`;
}
