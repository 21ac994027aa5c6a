/**
 * Owns the lines of a screen as bytes for an empty one: characters, colours, gaps, and which line goes on in the next.
 * Does not own the cursor, modes, or anything beside cells (picture.ts). Starts at the upper left with plain colours.
 */
import type { IBuffer, IBufferLine } from "@xterm/headless";
import { attributesSequence, backgroundSequence, isSeenAlone, plain } from "./attributes.ts";
import type { Cell } from "./xterm-internals.ts";

/** Combining marks without end in one cell are drawn by nobody. */
const cellCharsMax = 32;

export class Lines {
  readonly #buffer: IBuffer;
  readonly #cols: number;
  readonly #colours: boolean;
  readonly #cell: Cell;
  #said = "";
  #now = plain;

  constructor(buffer: IBuffer, cols: number, colours: boolean) {
    this.#buffer = buffer;
    this.#cols = cols;
    this.#colours = colours;
    this.#cell = buffer.getNullCell() as Cell;
  }

  /** Of the lines from `first` on. Afterwards colours are whatever they are. */
  say(first: number): string {
    this.#said = "";
    this.#now = plain;
    for (let y = first; y < this.#buffer.length; y += 1) {
      const line = this.#buffer.getLine(y);
      if (line === undefined) continue;
      const goesOn = y > first && this.#goesOn(y, line);
      // Plain, or a line that scrolls in would be filled with the colour.
      if (y > first && !goesOn) this.#paint(plain);
      if (y > first && !goesOn) this.#said += "\r\n";
      this.#line(line, goesOn);
    }
    return this.#said;
  }

  /** Only a character in the last column makes a terminal go on in the next line by itself. */
  #goesOn(y: number, line: IBufferLine): boolean {
    if (!line.isWrapped) return false;
    const before = this.#buffer.getLine(y - 1)?.getCell(this.#cols - 1, this.#cell);
    if (before === undefined || (before.getChars() === "" && before.getWidth() > 0)) return false;
    const next = line.getCell(0, this.#cell);
    return next !== undefined && next.getChars() !== "" && next.getWidth() > 0;
  }

  #line(line: IBufferLine, goesOn: boolean): void {
    let x = 0;
    while (x < this.#cols) {
      const cell = line.getCell(x, this.#cell) as Cell | undefined;
      if (cell === undefined) return;
      const chars = cell.getChars();
      if (chars === "" && !isSeenAlone(cell)) {
        x = this.#gap(line, x, goesOn);
        continue;
      }
      const width = Math.max(cell.getWidth(), 1);
      const fits = width === 1 || isWhole(line, x);
      const paint = this.#colours ? attributesSequence(cell) : plain;
      // Said again before what has no width, or it would join the character before.
      if (cell.getWidth() === 0 && chars !== "") this.#said += paint;
      this.#paint(paint);
      this.#said += fits && chars !== "" ? chars.slice(0, cellCharsMax) : " ";
      x += fits ? width : 1;
    }
  }

  /** Answers where it ends. Erased where it has a colour, or where the line came with one. */
  #gap(line: IBufferLine, from: number, goesOn: boolean): number {
    const first = line.getCell(from, this.#cell) as Cell;
    const { bg } = first;
    const paint = this.#colours ? backgroundSequence(first) : plain;
    let x = from + 1;
    for (; x < this.#cols; x += 1) {
      const cell = line.getCell(x, this.#cell) as Cell | undefined;
      if (cell === undefined || cell.getChars() !== "" || isSeenAlone(cell) || cell.bg !== bg)
        break;
    }
    const count = x - from;
    if (paint !== plain || goesOn) {
      this.#paint(paint);
      this.#said += `\x1b[${count}X`;
    }
    if (x < this.#cols) this.#said += `\x1b[${count}C`;
    return x;
  }

  #paint(sequence: string): void {
    if (this.#now === sequence) return;
    this.#now = sequence;
    this.#said += sequence;
  }
}

/** Without wrapping, the emulator lets a character overwrite the right half of a wide one in the last column. */
export function isWhole(line: IBufferLine, x: number): boolean {
  const right = line.getCell(x + 1);
  return right?.getWidth() === 0 && right.getChars() === "";
}
