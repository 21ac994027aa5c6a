/** The output of a run: a line each minute, the summary with broken promises, and the report as JSON. */

import type { ChaosRun } from "./chaos-run.ts";
import type { Findings } from "./checks.ts";
import { type History, isComplete } from "./history.ts";
import { type RunCounts, shortfalls } from "./minimums.ts";
import { repeatCommand } from "./options.ts";

/** The number of printed findings per promise. */
const printedMax = 10;

export type Report = RunCounts & {
  seed: number;
  minutes: number;
  tookMs: number;
  refused: number;
  unknown: number;
  kills: number;
  starts: number;
  /** The number of refused or interrupted calls by code. */
  codes: Record<string, number>;
  broken: number;
  findings: Findings & { "too little happened": string[] };
};

export function reportOf(seed: number, minutes: number, run: ChaosRun): Report {
  const { history, starts, hasDisk, tookMs } = run;
  const counts: RunCounts = {
    ...{ calls: history.calls.length, acks: history.count("ack") },
    ...{ faults: Object.fromEntries(history.faults), disk: hasDisk },
    requested: tally(history.calls.map(({ verb }) => verb)),
    verbs: tally(history.calls.filter(({ outcome }) => outcome === "ack").map(({ verb }) => verb)),
    ...{ reads: history.reads.length, streams: history.streams.length },
    completeStreams: history.streams.filter(isComplete).length,
  };
  const findings = {
    ...run.findings,
    "too little happened": shortfalls(counts, run.minutes),
  };
  return {
    ...counts,
    ...{ seed, minutes, tookMs: Math.round(tookMs), kills: killsOf(history), starts },
    ...{ refused: history.count("refused"), unknown: history.count("unknown") },
    codes: tally(history.calls.flatMap(({ code }) => code ?? [])),
    broken: Object.values(findings).flat().length,
    findings,
  };
}

export function minuteLine(history: History): string {
  const seconds = Math.round(history.now() / 1000);
  const faults = [...history.faults].map(([name, count]) => `${name} ${count}`).join(", ");
  const { length } = history.calls;
  return `${seconds} s: ${length} calls, ${history.count("ack")} acknowledged; ${faults}\n`;
}

export function summaryOf(report: Report): string {
  const { seed, calls, kills, acks, refused, unknown, starts } = report;
  const others = Object.entries(report.faults)
    .filter(([name]) => !name.startsWith("kill"))
    .map(([name, count]) => `${name} ${count}`);
  const broken = Object.entries(report.findings).map(([name, found]) => `${name} ${found.length}`);
  const lines = [
    `Seed ${seed}: ${calls} calls, ${acks} acknowledged, ${refused} refused, ${unknown} interrupted; ${kills} kills, ${starts} server starts`,
    `  Other faults: ${others.join(", ")}`,
    `  Findings: ${broken.join(", ")}`,
    ...(report.disk ? [] : ["  The disk was never filled, because nothing can be mounted here."]),
  ];
  for (const [name, found] of Object.entries(report.findings)) {
    lines.push(...found.slice(0, printedMax).map((finding) => `  ${name}: ${finding}`));
    if (found.length > printedMax) lines.push(`  ${name}: and ${found.length - printedMax} more`);
  }
  if (report.broken > 0) lines.push(`Repeat with: ${repeatCommand(seed, report.minutes)}`);
  return `${lines.join("\n")}\n`;
}

function killsOf({ faults }: History): number {
  return [...faults].reduce((sum, [name, count]) => sum + (name.startsWith("kill") ? count : 0), 0);
}

function tally(names: string[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const name of names) counts[name] = (counts[name] ?? 0) + 1;
  return counts;
}
