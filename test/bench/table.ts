/** Prints figures as one aligned table, followed by each missed target and what limits it. */
import type { Figure } from "./figure.ts";

const head = ["Row", "Measured", "Target", "Ratio", ""];

export function tableOf(figures: Figure[]): string {
  const lines = [head, ...figures.map(cells)];
  const widths = head.map((_, index) =>
    Math.max(...lines.map((line) => (line[index] ?? "").length)),
  );
  const rule = widths.map((width) => "-".repeat(width));
  const text = [head, rule, ...figures.map(cells)].map((line) =>
    line
      .map((cell, index) => cell.padEnd(widths[index] ?? 0))
      .join("  ")
      .trimEnd(),
  );
  const missed = figures.filter(({ met }) => met === false);
  if (missed.length > 0) {
    text.push(
      "",
      ...missed.map(
        ({ row, bound = "limits described in docs/design/performance.md" }) =>
          `MISSED: ${row}. Limited by ${bound}.`,
      ),
    );
  }
  return `${text.join("\n")}\n`;
}

function cells({ row, measured, target = "", ratio, met }: Figure): string[] {
  const verdict = met === undefined ? "" : met ? "pass" : "MISS";
  return [row, measured, target, ratio === undefined ? "" : `${ratio.toFixed(2)} ×`, verdict];
}
