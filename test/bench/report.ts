/**
 * Owns the file that keeps a run: machine, versions, commit, and every figure with what it was made of.
 * Does not own what is printed.
 */
import { spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { cpus, release, totalmem } from "node:os";
import { join, relative } from "node:path";
import { root, tools } from "../../container/launch/places.js";
import type { Figure } from "./figure.ts";

export type Run = {
  begunAt: Date;
  isShort: boolean;
  /** Of all cores, by others, before each row. */
  busyPercents: Record<string, number>;
  /** That each row took. */
  seconds: Record<string, number>;
  figures: Figure[];
  failures: string[];
};

/** Answers where it was written, as seen from here, and what. */
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
      id: said("git", ["-C", root, "rev-parse", "HEAD"]),
      changed: said("git", ["-C", root, "status", "--porcelain"]) !== "unknown",
    },
    versions: {
      node: process.version,
      bun: said(tools.bun, ["--version"]),
      workerd: said(tools.workerd, ["--version"]),
    },
    seconds,
    figures,
    failures,
  };
  const text = `${JSON.stringify(report, undefined, 2)}\n`;
  writeFileSync(path, text);
  return { path: relative(process.cwd(), path), text };
}

function said(program: string, args: string[]): string {
  const { stdout } = spawnSync(program, args, { encoding: "utf8", timeout: 10_000 });
  return stdout?.trim() || "unknown";
}
