/**
 * Owns what a run tells of itself: a line each minute, the summary, what was broken, and all of it as JSON.
 */
import type { Broken } from "./checks.ts";
import { type Happened, missing } from "./floors.ts";
import { type History, isWhole } from "./history.ts";
import { repeatLine } from "./options.ts";
import type { Played } from "./play.ts";

/** Of each kind of broken promise. */
const toldMax = 10;

export type Report = Happened & {
  seed: number;
  minutes: number;
  tookMs: number;
  refused: number;
  unknown: number;
  kills: number;
  starts: number;
  /** By code: how many were refused or cut off with it. */
  codes: Record<string, number>;
  broken: number;
  findings: Broken & { "nothing happened": string[] };
};

export function reportOf(seed: number, minutes: number, played: Played): Report {
  const { history, starts, hasDisk, tookMs } = played;
  const happened: Happened = {
    ...{ calls: history.calls.length, acks: history.count("ack") },
    ...{ faults: Object.fromEntries(history.faults), disk: hasDisk },
    asked: tally(history.calls.map(({ verb }) => verb)),
    verbs: tally(history.calls.filter(({ outcome }) => outcome === "ack").map(({ verb }) => verb)),
    ...{ reads: history.reads.length, streams: history.streams.length },
    wholeStreams: history.streams.filter(isWhole).length,
  };
  const findings = {
    ...played.findings,
    "nothing happened": missing(happened, played.minutes),
  };
  return {
    ...happened,
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
  return `${seconds} s: ${length} calls, ${history.count("ack")} acks; ${faults}\n`;
}

export function summaryOf(report: Report): string {
  const { seed, calls, kills, acks, refused, unknown, starts } = report;
  const others = Object.entries(report.faults)
    .filter(([name]) => !name.startsWith("kill"))
    .map(([name, count]) => `${name} ${count}`);
  const broken = Object.entries(report.findings).map(([name, found]) => `${name} ${found.length}`);
  const lines = [
    `seed ${seed}: ${calls} calls, ${kills} kills, ${acks} acks, ${refused} refused, ${unknown} cut off, ${starts} starts`,
    `  faults beside the kills: ${others.join(", ")}`,
    `  ${broken.join(", ")}`,
    ...(report.disk ? [] : ["  the disk was never full: nothing may be mounted here"]),
  ];
  for (const [name, found] of Object.entries(report.findings)) {
    lines.push(...found.slice(0, toldMax).map((one) => `  ${name}: ${one}`));
    if (found.length > toldMax) lines.push(`  ${name}: and ${found.length - toldMax} more`);
  }
  if (report.broken > 0) lines.push(`again: ${repeatLine(seed, report.minutes)}`);
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
