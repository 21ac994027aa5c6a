/** Serializes the lines of a screen for an empty one, from the upper left on and with plain colours at first. */
import type { IBuffer, IBufferLine } from "@xterm/headless";
import { attributesSequence, backgroundSequence, isVisibleWhenBlank, plain } from "./attributes.ts";
import type { Cell } from "./xterm-internals.ts";

/** Bounds the combining marks in one cell. */
const cellCharsMax = 32;

export class LineSerializer {
  readonly #buffer: IBuffer;
  readonly #cols: number;
  readonly #colours: boolean;
  readonly #cell: Cell;
  #output = "";
  #style = plain;

  constructor(buffer: IBuffer, cols: number, colours: boolean) {
    this.#buffer = buffer;
    this.#cols = cols;
    this.#colours = colours;
    this.#cell = buffer.getNullCell() as Cell;
  }

  /** Serializes the lines from `first` on. Leaves the colours as the last cell has them. */
  serialize(first: number): string {
    this.#output = "";
    this.#style = plain;
    for (let y = first; y < this.#buffer.length; y += 1) {
      const line = this.#buffer.getLine(y);
      if (line === undefined) continue;
      const isWrapped = y > first && this.#continues(y, line);
      // With a colour set, a line that scrolls in would be filled with it.
      if (y > first && !isWrapped) this.#paint(plain);
      if (y > first && !isWrapped) this.#output += "\r\n";
      this.#line(line, isWrapped);
    }
    return this.#output;
  }

  /** Whether a terminal would wrap here by itself: only after a character in the last column. */
  #continues(y: number, line: IBufferLine): boolean {
    if (!line.isWrapped) return false;
    const before = this.#buffer.getLine(y - 1)?.getCell(this.#cols - 1, this.#cell);
    if (before === undefined || (before.getChars() === "" && before.getWidth() > 0)) return false;
    const next = line.getCell(0, this.#cell);
    return next !== undefined && next.getChars() !== "" && next.getWidth() > 0;
  }

  #line(line: IBufferLine, isWrapped: boolean): void {
    let x = 0;
    while (x < this.#cols) {
      const cell = line.getCell(x, this.#cell) as Cell | undefined;
      if (cell === undefined) return;
      const chars = cell.getChars();
      if (chars === "" && !isVisibleWhenBlank(cell)) {
        x = this.#gap(line, x, isWrapped);
        continue;
      }
      const width = Math.max(cell.getWidth(), 1);
      const fits = width === 1 || isWideCellIntact(line, x);
      const paint = this.#colours ? attributesSequence(cell) : plain;
      // Repeated before a character without width, which would join the previous character otherwise.
      if (cell.getWidth() === 0 && chars !== "") this.#output += paint;
      this.#paint(paint);
      this.#output += fits && chars !== "" ? chars.slice(0, cellCharsMax) : " ";
      x += fits ? width : 1;
    }
  }

  /** Returns where the gap ends. Erases it if it has a colour, or if a wrapped line may have brought one. */
  #gap(line: IBufferLine, from: number, isWrapped: boolean): number {
    const first = line.getCell(from, this.#cell) as Cell;
    const { bg } = first;
    const paint = this.#colours ? backgroundSequence(first) : plain;
    let x = from + 1;
    for (; x < this.#cols; x += 1) {
      const cell = line.getCell(x, this.#cell) as Cell | undefined;
      if (
        cell === undefined ||
        cell.getChars() !== "" ||
        isVisibleWhenBlank(cell) ||
        cell.bg !== bg
      )
        break;
    }
    const count = x - from;
    if (paint !== plain || isWrapped) {
      this.#paint(paint);
      this.#output += `\x1b[${count}X`;
    }
    if (x < this.#cols) this.#output += `\x1b[${count}C`;
    return x;
  }

  #paint(sequence: string): void {
    if (this.#style === sequence) return;
    this.#style = sequence;
    this.#output += sequence;
  }
}

/** False where a character has overwritten the right half of a wide one, as happens in the last column without wrapping. */
export function isWideCellIntact(line: IBufferLine, x: number): boolean {
  const right = line.getCell(x + 1);
  return right?.getWidth() === 0 && right.getChars() === "";
}
