/**
 * Owns tables: columns as wide as their widest cell, two spaces between, cut off at the terminal's edge.
 */
import { stripVTControlCharacters } from "node:util";

export type Column<T> = { name: string; cell: (row: T) => string };

/** Lines without trailing spaces. `width` is the terminal's; a pipe has none and gets all. */
export function table<T>(columns: Column<T>[], rows: T[], width?: number): string[] {
  const cells = [
    columns.map(({ name }) => name),
    ...rows.map((row) => columns.map(({ cell }) => plain(cell(row)))),
  ];
  const widths = columns.map((_, at) =>
    Math.max(...cells.map((line) => columnsOf(line[at] ?? ""))),
  );
  return cells.map((line) =>
    cut(
      line
        .map((cell, at) => pad(cell, widths[at] ?? 0))
        .join("  ")
        .trimEnd(),
      width,
    ),
  );
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
