/** Measures many running sandboxes: memory, idle load, response times and shutdown. */
import { setTimeout as sleep } from "node:timers/promises";
import { Berth } from "../berth.ts";
import { type Bench, type Figure, inMs, percentile, round, spread, targetOf } from "../figure.ts";
import { parallel } from "../measure.ts";
import {
  cpuSeconds,
  kernelBytes,
  memoryAvailableBytes,
  nameOf,
  proportionalBytes,
} from "../processes.ts";

const MiB = 1024 * 1024;
const mebibytesEachMax = 10;
const idlePercentMax = 3;
const createAtOnce = 8;
/**
 * Idle objects leave memory after ten seconds, and the agent's runtime collects garbage every second until half a
 * minute has passed: from then on a sandbox is idle.
 */
const settleMs = 40_000;

export async function density(bench: Bench): Promise<Figure[]> {
  const many = bench.isShort ? 20 : 500;
  const idleMs = bench.isShort ? 3_000 : 20_000;
  const berth = await Berth.start(bench);
  await berth.destroy(await berth.create());
  await settle(bench);

  const before = memoryOf(berth);
  const startedAt = performance.now();
  const ids = await fill(bench, berth, many);
  const filledMs = performance.now() - startedAt;
  await settle(bench);
  const after = memoryOf(berth);
  bench.progress.say(`idle for ${idleMs / 1000} s`);
  const idle = await idlePercent(berth, idleMs);
  const sample = ids.filter((_, index) => index % Math.ceil(many / 100) === 0);
  const times = await responseTimes(berth, sample);

  const ending = performance.now();
  const left = await berth.end();
  const endedMs = performance.now() - ending;
  const each = (before.available - after.available) / many;
  const byPart = partsOf(before, after, many);
  return [
    {
      row: `${many} running sandboxes: memory each, in total`,
      measured: `${(each / MiB).toFixed(1)} MiB`,
      ...targetOf(bench, each / MiB, mebibytesEachMax, "MiB"),
      raw: { many, before, after, filledMs: round(filledMs) },
    },
    {
      row: "… as counted by processes and kernel",
      measured: byPart === undefined ? "not readable by this user" : `${byPart.all.toFixed(1)} MiB`,
      raw: { eachMiB: byPart },
    },
    {
      row: "… idle: share of one core",
      measured: `${idle.all.toFixed(2)} %`,
      ...targetOf(bench, idle.all, idlePercentMax, "%"),
      raw: idle,
    },
    {
      row: `… exec on ${sample.length} of them: median, p99`,
      measured: [50, 99].map((percent) => inMs(1)(percentile(times, percent))).join(", "),
      target: "all respond",
      met: times.length === sample.length,
      raw: spread(times),
    },
    {
      row: "… shutdown",
      measured: `${(endedMs / 1000).toFixed(1)} s, ${left.length === 0 ? "nothing left" : `${left.length} traces left`}`,
      target: "nothing left",
      met: left.length === 0,
      raw: { endedMs: round(endedMs), left: left.slice(0, 50) },
    },
  ];
}

async function settle(bench: Bench): Promise<void> {
  bench.progress.say("settling");
  await sleep(bench.isShort ? 1_000 : settleMs);
}

function memoryOf(berth: Berth) {
  const pids = berth.processes();
  return {
    available: memoryAvailableBytes(),
    sharedOut: proportionalBytes(pids),
    kernel: kernelBytes(),
    processes: pids.length,
  };
}

/** In MiB per sandbox: a second way to the same sum, less affected by other programs. */
function partsOf(
  before: ReturnType<typeof memoryOf>,
  after: ReturnType<typeof memoryOf>,
  many: number,
): ({ all: number } & Record<string, number>) | undefined {
  if (before.sharedOut === undefined || after.sharedOut === undefined) return undefined;
  const each = (bytes: number) => round(bytes / many / MiB);
  const kernel = Object.entries(after.kernel).map(([kind, bytes]): [string, number] => [
    kind,
    each(bytes - (before.kernel[kind] ?? 0)),
  ]);
  const processes = each(after.sharedOut - before.sharedOut);
  const all = kernel.reduce((sum, [, mebibytes]) => sum + mebibytes, processes);
  return { all: round(all), processes, ...Object.fromEntries(kernel) };
}

/** Creates the sandboxes and runs one command in each, because an unused sandbox needs less memory. */
async function fill(bench: Bench, berth: Berth, many: number): Promise<string[]> {
  const call = JSON.stringify({ command: "true" });
  let done = 0;
  return parallel(many, createAtOnce, async () => {
    const id = await berth.create();
    await berth.run(id, call);
    done += 1;
    bench.progress.of(done, many, "sandbox");
    return id;
  });
}

/** Processor time of all of Berth's processes as a share of one core, also by program. */
async function idlePercent(berth: Berth, ms: number) {
  const before = cpuSeconds(berth.processes());
  const startedAt = performance.now();
  await sleep(ms);
  const seconds = (performance.now() - startedAt) / 1000;
  const byName: Record<string, number> = {};
  let all = 0;
  for (const [pid, used] of cpuSeconds(berth.processes())) {
    const percent = ((used - (before.get(pid) ?? 0)) / seconds) * 100;
    all += percent;
    byName[nameOf(pid)] = round((byName[nameOf(pid)] ?? 0) + percent);
  }
  return { all: round(all), seconds: round(seconds), byName };
}

async function responseTimes(berth: Berth, ids: string[]): Promise<number[]> {
  const times: number[] = [];
  for (const [index, id] of ids.entries()) {
    const startedAt = performance.now();
    const { stdout } = await berth.exec(id, { command: `echo ${index}` });
    if (stdout === `${index}\n`) times.push(performance.now() - startedAt);
  }
  return times;
}
