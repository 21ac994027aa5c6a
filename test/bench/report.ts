/**
 * Owns the file that keeps a run: machine, versions, and every figure with what it was made of.
 * Does not own what is printed.
 */
import { spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { cpus, release, totalmem } from "node:os";
import { join, relative } from "node:path";
import { root, tools } from "../../container/engine/launch/places.js";
import type { Figure } from "./figure.ts";

export type Run = {
  begunAt: Date;
  isShort: boolean;
  /** Of all cores, by others, before each row. */
  busyPercents: Record<string, number>;
  figures: Figure[];
  failures: string[];
};

/** Answers where it was written, as seen from the root. */
export function writeReport({ begunAt, isShort, busyPercents, figures, failures }: Run): string {
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
    versions: {
      berth: said("git", ["-C", root, "describe", "--always", "--dirty"]),
      node: process.version,
      bun: said(tools.bun, ["--version"]),
      workerd: said(tools.workerd, ["--version"]),
    },
    figures,
    failures,
  };
  writeFileSync(path, `${JSON.stringify(report, undefined, 2)}\n`);
  return relative(process.cwd(), path);
}

function said(program: string, args: string[]): string {
  const { stdout } = spawnSync(program, args, { encoding: "utf8", timeout: 10_000 });
  return stdout?.trim() || "unknown";
}
