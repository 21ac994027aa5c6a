/**
 * Owns tables: columns as wide as their widest cell, two spaces between. Where that is wider than the terminal, the
 * columns that may shrink do, the widest first; what is too wide still is cut off at the terminal's edge.
 */
import { stripVTControlCharacters } from "node:util";

export type Column<T> = {
  name: string;
  cell: (row: T) => string;
  /** Its cells are told from each other also where they are cut. */
  shrinks?: boolean;
};

const between = "  ";
/** Below that a cell says nothing. */
const shrunkMin = 12;

/** Lines without trailing spaces. `edge` is the terminal's; a pipe has none, one without a size says 0: both get all. */
export function table<T>(columns: Column<T>[], rows: T[], edge?: number): string[] {
  const width = edge === 0 ? undefined : edge;
  const cells = [
    columns.map(({ name }) => name),
    ...rows.map((row) => columns.map(({ cell }) => plain(cell(row)))),
  ];
  const widest = columns.map((_, at) =>
    Math.max(...cells.map((line) => columnsOf(line[at] ?? ""))),
  );
  const widths = width === undefined ? widest : shrunk(columns, widest, width);
  return cells.map((line) => {
    const padded = line.map((cell, at) => pad(cut(cell, widths[at]), widths[at] ?? 0));
    return cut(padded.join(between).trimEnd(), width);
  });
}

function shrunk<T>(columns: Column<T>[], widest: number[], width: number): number[] {
  const widths = [...widest];
  const gaps = between.length * (widths.length - 1);
  let over = widths.reduce((sum, one) => sum + one, gaps) - width;
  for (; over > 0; over -= 1) {
    const mayShrink = widths.map((one, at) => (columns[at]?.shrinks === true ? one : 0));
    const most = Math.max(...mayShrink);
    if (most <= shrunkMin) break;
    widths[mayShrink.indexOf(most)] = most - 1;
  }
  return widths;
}

/** What a name holds must not move the cursor. */
function plain(text: string): string {
  return stripVTControlCharacters(text).replace(/\p{Cc}/gu, "�");
}

function pad(text: string, width: number): string {
  return text + " ".repeat(width - columnsOf(text));
}

function cut(line: string, width: number | undefined): string {
  if (width === undefined || columnsOf(line) <= width) return line;
  let kept = "";
  let columns = 0;
  for (const { segment } of segmenter.segment(line)) {
    columns += columnsOf(segment);
    if (columns > width - 1) break;
    kept += segment;
  }
  return `${kept.trimEnd()}…`;
}

const segmenter = new Intl.Segmenter();
const wide =
  /\p{Emoji_Presentation}|\p{Script=Han}|\p{Script=Hiragana}|\p{Script=Katakana}|\p{Script=Hangul}/u;

function columnsOf(text: string): number {
  let columns = 0;
  for (const { segment } of segmenter.segment(text)) columns += wide.test(segment) ? 2 : 1;
  return columns;
}
