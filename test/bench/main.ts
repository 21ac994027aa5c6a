/**
 * Runs the bench: measures the chosen rows one after the other, ends all servers in any case, and writes table and
 * report.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { runProgram } from "../../container/launch/program.js";
import type { Bench, End, Figure } from "./figure.ts";
import { help, type Options, parseOptions } from "./options.ts";
import { machineSeconds } from "./processes.ts";
import { Progress } from "./progress.ts";
import { tableOf, writeReport } from "./report.ts";
import { bounds, type RowName, rows } from "./rows.ts";

/** The load of the machine is sampled before each row, while the bench runs nothing. */
const sampleMs = 500;
const busyPercentMax = 15;

const progress = new Progress(process.stderr);
/** What the current row has started; the latest is ended first. */
const ends: End[] = [];
let ending: Promise<string[]> | undefined;

await runProgram(async () => {
  const options = parseOptions(process.argv.slice(2));
  if (options.help) {
    process.stdout.write(help);
    return 0;
  }
  return measure(options);
});
process.exit();

async function measure({ rows: chosen, isShort, judges, isJson }: Options): Promise<number> {
  const begunAt = new Date();
  const figures: Figure[] = [];
  const failures: string[] = [];
  const busyPercents: Record<string, number> = {};
  const seconds: Record<string, number> = {};
  let stopped = false;
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
    // The signal may come several times: each thread of a dying parent sends one.
    process.on(signal, async () => {
      if (stopped) return;
      stopped = true;
      progress.clear();
      await endAll();
      process.exit(1);
    });
  }
  for (const name of chosen) {
    if (stopped) return new Promise(() => {});
    progress.row(name);
    busyPercents[name] = await busyPercent();
    const startedAt = performance.now();
    try {
      figures.push(...(await measureRow(name, isShort)));
      seconds[name] = Math.round((performance.now() - startedAt) / 1000);
    } catch (thrown) {
      if (stopped) return new Promise(() => {});
      progress.clear();
      failures.push(`${name}: ${thrown instanceof Error ? thrown.message : thrown}`);
      process.stderr.write(`${name} could not be measured: ${errorText(thrown)}\n`);
    }
  }
  progress.clear();
  const shown = isJson ? process.stderr : process.stdout;
  shown.write(tableOf(figures));
  const busiest = Math.max(...Object.values(busyPercents));
  if (busiest > busyPercentMax) {
    const warning = `Other programs used up to ${busiest} % of this machine: all figures, including ratios, are worse than on an idle machine.`;
    shown.write(`\n${warning}\n`);
  }
  const report = writeReport({ begunAt, isShort, busyPercents, seconds, figures, failures });
  shown.write(`\n${report.path}\n`);
  if (isJson)
    await new Promise<void>((resolve) => process.stdout.write(report.text, () => resolve()));
  const missed = figures.some(({ met }) => met === false);
  return failures.length > 0 || (judges && missed) ? 1 : 0;
}

/** The share of all cores in use while the bench runs nothing. */
async function busyPercent(): Promise<number> {
  const before = machineSeconds();
  await sleep(sampleMs);
  const after = machineSeconds();
  return Math.round(((after.busy - before.busy) / (after.all - before.all)) * 100);
}

async function measureRow(name: RowName, isShort: boolean): Promise<Figure[]> {
  const bench: Bench = {
    isShort,
    progress,
    folder() {
      const folder = mkdtempSync(join(tmpdir(), "berth-bench-"));
      bench.closes(() => rmSync(folder, { recursive: true, force: true }));
      return folder;
    },
    ends: (end) => ends.push(end),
    closes: (close) =>
      ends.push(async () => {
        await close();
        return [];
      }),
  };
  let figures: Figure[];
  try {
    const bound = bounds[name];
    figures = await rows[name](bench);
    if (bound !== undefined) figures = figures.map((figure) => ({ bound, ...figure }));
  } catch (thrown) {
    await endAll();
    throw thrown;
  }
  const left = await endAll();
  if (left.length > 0) throw new Error(`left behind: ${left.slice(0, 10).join(", ")}`);
  return figures;
}

/** Ends everything and returns a description of what is left. A row that a signal interrupted joins a running end. */
function endAll(): Promise<string[]> {
  ending ??= endEach().finally(() => {
    ending = undefined;
  });
  return ending;
}

async function endEach(): Promise<string[]> {
  const left: string[] = [];
  for (let end = ends.pop(); end !== undefined; end = ends.pop()) {
    try {
      left.push(...(await end()));
    } catch (thrown) {
      left.push(errorText(thrown));
    }
  }
  return left;
}

function errorText(thrown: unknown): string {
  return thrown instanceof Error ? (thrown.stack ?? thrown.message) : String(thrown);
}
