/**
 * Owns how figures are shown to a person: one aligned table, and below it each miss with what bounds it.
 * Does not own the figures.
 */
import type { Figure } from "./figure.ts";

const head = ["row", "measured", "target", "ratio", ""];

export function tableOf(figures: Figure[]): string {
  const lines = [head, ...figures.map(cells)];
  const widths = head.map((_, at) => Math.max(...lines.map((line) => (line[at] ?? "").length)));
  const rule = widths.map((width) => "-".repeat(width));
  const text = [head, rule, ...figures.map(cells)].map((line) =>
    line
      .map((cell, at) => cell.padEnd(widths[at] ?? 0))
      .join("  ")
      .trimEnd(),
  );
  const missed = figures.filter(({ met }) => met === false);
  if (missed.length > 0) {
    text.push(
      "",
      ...missed.map(
        ({ row, bound = "what docs/performance.md says of it" }) =>
          `MISSED: ${row}; bound by ${bound}`,
      ),
    );
  }
  return `${text.join("\n")}\n`;
}

function cells({ row, measured, target = "", ratio, met }: Figure): string[] {
  const verdict = met === undefined ? "" : met ? "pass" : "MISS";
  return [row, measured, target, ratio === undefined ? "" : `${ratio.toFixed(2)} ×`, verdict];
}
