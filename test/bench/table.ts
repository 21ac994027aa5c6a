/**
 * Owns how figures are shown to a person: one aligned table, misses named once more below it.
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
    text.push("", `MISSED: ${missed.map(({ row }) => row).join("; ")}`);
  }
  return `${text.join("\n")}\n`;
}

function cells({ row, measured, target = "", ratio, met }: Figure): string[] {
  const verdict = met === undefined ? "" : met ? "pass" : "MISS";
  return [row, measured, target, ratio === undefined ? "" : `${ratio.toFixed(2)} ×`, verdict];
}
