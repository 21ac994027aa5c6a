/**
 * Owns a run of the bench: the chosen rows one after the other, all servers ended whatever happens, table and file.
 * Does not own any row.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { run } from "../../container/engine/launch/say.js";
import type { Bench, Figure } from "./figure.ts";
import { help, type Options, parseOptions } from "./options.ts";
import { Progress } from "./progress.ts";
import { writeReport } from "./report.ts";
import { type RowName, rows } from "./rows.ts";
import { tableOf } from "./table.ts";

const progress = new Progress(process.stderr);
/** Of the row that runs now; the latest is ended first. */
const ends: (() => Promise<unknown>)[] = [];

await run(async () => {
  const options = parseOptions(process.argv.slice(2));
  if (options.help) {
    process.stdout.write(help);
    return 0;
  }
  return measure(options);
});
process.exit();

async function measure({ rows: chosen, isShort, judges }: Options): Promise<number> {
  const begunAt = new Date();
  const figures: Figure[] = [];
  const failures: string[] = [];
  let stopped = false;
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
    process.once(signal, async () => {
      stopped = true;
      progress.clear();
      await endAll();
      process.exit(1);
    });
  }
  for (const name of chosen) {
    if (stopped) return new Promise(() => {});
    progress.row(name);
    try {
      figures.push(...(await measureRow(name, isShort)));
    } catch (thrown) {
      if (stopped) return new Promise(() => {});
      progress.clear();
      failures.push(`${name}: ${thrown instanceof Error ? thrown.message : thrown}`);
      process.stderr.write(`${name} could not be measured: ${errorText(thrown)}\n`);
    }
  }
  progress.clear();
  process.stdout.write(tableOf(figures));
  process.stdout.write(`\n${writeReport({ begunAt, isShort, figures, failures })}\n`);
  const missed = figures.some(({ met }) => met === false);
  return failures.length > 0 || (judges && missed) ? 1 : 0;
}

async function measureRow(name: RowName, isShort: boolean): Promise<Figure[]> {
  const folders: string[] = [];
  const bench: Bench = {
    isShort,
    progress,
    folder() {
      const made = mkdtempSync(join(tmpdir(), "berth-bench-"));
      folders.push(made);
      return made;
    },
    ends: (end) => ends.push(end),
  };
  try {
    return await rows[name](bench);
  } finally {
    await endAll();
    for (const folder of folders) rmSync(folder, { recursive: true, force: true });
  }
}

async function endAll(): Promise<void> {
  for (let end = ends.pop(); end !== undefined; end = ends.pop()) {
    await end().catch((thrown) => process.stderr.write(`${errorText(thrown)}\n`));
  }
}

function errorText(thrown: unknown): string {
  return thrown instanceof Error ? (thrown.stack ?? thrown.message) : String(thrown);
}
