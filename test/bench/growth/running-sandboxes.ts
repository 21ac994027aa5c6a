/**
 * How a command's time and a sandbox's memory grow with the number of running sandboxes. See rows/density.ts for the
 * judged figures.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { Berth } from "../berth.ts";
import { type Bench, type Figure, inMs, round, spread } from "../figure.ts";
import { parallel, timesOf } from "../measure.ts";
import { memoryAvailableBytes, proportionalBytes } from "../processes.ts";

const MiB = 1024 * 1024;
const createAtOnce = 8;
const warmUps = 30;
/** Lets new sandboxes become idle. */
const settleMs = 3_000;

export async function runningSandboxGrowth(bench: Bench): Promise<Figure[]> {
  const steps = bench.isShort ? [1, 10, 40] : [1, 10, 100, 500];
  const samples = bench.isShort ? 60 : 400;
  const berth = await Berth.start(bench);
  await berth.destroy(await berth.create());
  await sleep(settleMs);
  const before = { available: memoryAvailableBytes(), own: proportionalBytes(berth.processes()) };
  const body = JSON.stringify({ command: "true" });
  const ids: string[] = [];
  const figures: Figure[] = [];
  let first: number | undefined;
  for (const many of steps) {
    bench.progress.say(`${many} live sandboxes`);
    await parallel(many - ids.length, createAtOnce, async () => {
      const id = await berth.create();
      await berth.run(id, body);
      ids.push(id);
    });
    await sleep(settleMs);
    const available = (before.available - memoryAvailableBytes()) / many / MiB;
    const own = proportionalBytes(berth.processes());
    const owned =
      own === undefined || before.own === undefined ? undefined : (own - before.own) / many / MiB;
    // Calls all sandboxes in an order that returns to each one late.
    const run = (index: number) => berth.run(ids[(index * 7) % many] ?? "", body);
    await timesOf(warmUps, run);
    const times = spread(await timesOf(samples, run));
    const { median: ms, p99 } = times;
    first ??= ms;
    figures.push({
      row: `growth: exec with ${many} live, one at a time: median, p99`,
      measured: `${inMs(2)(ms)}, ${inMs(2)(p99)}; ${available.toFixed(1)} MiB each, ${owned?.toFixed(1) ?? "?"} of its processes`,
      ratio: round(ms / first),
      raw: { many, ...times, availableMiB: round(available), processesMiB: owned },
    });
  }
  return figures;
}
