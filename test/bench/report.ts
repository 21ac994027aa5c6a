/** The results of a run: the report file with machine, versions, commit and raw values, and the printed table. */
import { spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { cpus, release, totalmem } from "node:os";
import { join, relative } from "node:path";
import { root, tools } from "../../container/launch/paths.js";
import type { Figure } from "./figure.ts";

export type Run = {
  begunAt: Date;
  isShort: boolean;
  /** Share of all cores that other programs used before each row. */
  busyPercents: Record<string, number>;
  /** The duration of each row. */
  seconds: Record<string, number>;
  figures: Figure[];
  failures: string[];
};

/** Returns the path of the report, relative to the working folder, and its text. */
export function writeReport({ begunAt, isShort, busyPercents, seconds, figures, failures }: Run): {
  path: string;
  text: string;
} {
  const folder = join(root, "bench-results");
  mkdirSync(folder, { recursive: true });
  const path = join(folder, `${begunAt.toISOString().replaceAll(":", "-")}.json`);
  const report = {
    begunAt: begunAt.toISOString(),
    isShort,
    machine: {
      cores: cpus().length,
      processor: cpus()[0]?.model ?? "unknown",
      memoryMiB: Math.round(totalmem() / 1024 / 1024),
      kernel: release(),
      loadAtEnd: readFileSync("/proc/loadavg", "utf8").trim(),
      busyPercents,
    },
    commit: {
      id: outputOf("git", ["-C", root, "rev-parse", "HEAD"]),
      changed: outputOf("git", ["-C", root, "status", "--porcelain"]) !== "unknown",
    },
    versions: {
      node: process.version,
      bun: outputOf(tools.bun, ["--version"]),
      workerd: outputOf(tools.workerd, ["--version"]),
    },
    seconds,
    figures,
    failures,
  };
  const text = `${JSON.stringify(report, undefined, 2)}\n`;
  writeFileSync(path, text);
  return { path: relative(process.cwd(), path), text };
}

function outputOf(program: string, args: string[]): string {
  const { stdout } = spawnSync(program, args, { encoding: "utf8", timeout: 10_000 });
  return stdout?.trim() || "unknown";
}

const head = ["Row", "Measured", "Target", "Ratio", ""];

/** Prints figures as one aligned table, followed by each missed target and what limits it. */
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
