/** Formats tables: columns as wide as their widest cell; if that is too wide, those that may shrink do. */
import { toPlainLine } from "./plain-text.ts";

export type Column<T> = {
  name: string;
  cell: (row: T) => string;
  /** Its cells stay distinguishable when they are cut. */
  shrinks?: boolean;
};

const columnGap = "  ";
/** A narrower cell would be meaningless. */
const columnWidthMin = 12;

/**
 * Returns lines without trailing spaces. `edge` is the width of the terminal; undefined (a pipe) or 0 (unknown) means
 * no limit.
 */
export function formatTable<T>(columns: Column<T>[], rows: T[], edge?: number): string[] {
  const width = edge === 0 ? undefined : edge;
  const cells = [
    columns.map(({ name }) => name),
    ...rows.map((row) => columns.map(({ cell }) => toPlainLine(cell(row)))),
  ];
  const widest = columns.map((_, index) =>
    Math.max(...cells.map((line) => displayWidth(line[index] ?? ""))),
  );
  const widths = width === undefined ? widest : shrinkColumns(columns, widest, width);
  return cells.map((line) => {
    const padded = line.map((cell, index) =>
      pad(truncate(cell, widths[index]), widths[index] ?? 0),
    );
    return truncate(padded.join(columnGap).trimEnd(), width);
  });
}

function shrinkColumns<T>(columns: Column<T>[], widest: number[], width: number): number[] {
  const widths = [...widest];
  const gaps = columnGap.length * (widths.length - 1);
  let excess = widths.reduce((sum, width) => sum + width, gaps) - width;
  for (; excess > 0; excess -= 1) {
    const mayShrink = widths.map((width, index) => (columns[index]?.shrinks === true ? width : 0));
    const widestShrinkable = Math.max(...mayShrink);
    if (widestShrinkable <= columnWidthMin) break;
    widths[mayShrink.indexOf(widestShrinkable)] = widestShrinkable - 1;
  }
  return widths;
}

function pad(text: string, width: number): string {
  return text + " ".repeat(width - displayWidth(text));
}

function truncate(line: string, width: number | undefined): string {
  if (width === undefined || displayWidth(line) <= width) return line;
  let text = "";
  let columns = 0;
  for (const { segment } of segmenter.segment(line)) {
    columns += displayWidth(segment);
    if (columns > width - 1) break;
    text += segment;
  }
  return `${text.trimEnd()}…`;
}

const segmenter = new Intl.Segmenter();
const wide =
  /\p{Emoji_Presentation}|\p{Script=Han}|\p{Script=Hiragana}|\p{Script=Katakana}|\p{Script=Hangul}/u;

function displayWidth(text: string): number {
  let columns = 0;
  for (const { segment } of segmenter.segment(text)) columns += wide.test(segment) ? 2 : 1;
  return columns;
}
