/**
 * Measures one command through Berth and directly from the agent, in turns.
 */
import { setTimeout as pause } from "node:timers/promises";
import { Berth } from "../berth.ts";
import { agentCall, DirectEngine } from "../direct.ts";
import { type Bench, type Figure, median, round, spread } from "../figure.ts";
import { parallel } from "../http.ts";

const latencyRatioMax = 1.9;
const throughputRatioMin = 0.75;
const concurrency = 16;
const warmUp = 500;
/** Most commands come after a pause; a run without pauses hides what a pause costs. */
const quietMs = 100;
const afterQuietRatioMax = 3;
const command = "true";
/** Runs without a shell. */
const argv = ["/bin/true"];

/** `quietMs`: a pause before each call that is not counted. */
type Side = { name: string; quietMs?: number; run(): Promise<{ exitCode: number | null }> };

export async function exec(bench: Bench): Promise<Figure[]> {
  const berth = await Berth.start(bench);
  const engine = await DirectEngine.start(bench);
  const id = await berth.create();
  const direct = await engine.create(concurrency);
  const call = JSON.stringify({ command });
  const agentRequest = agentCall({ command });
  const sides: [Side, Side] = [
    { name: "berth", run: () => berth.exec(id, call) },
    { name: "direct", run: () => direct.exec(agentRequest) },
  ];
  bench.progress.say("warming up");
  // A side that is not yet compiled by the JIT cannot be compared.
  for (const side of sides) await commandsPerSecond(side, warmUp);
  const argvCall = JSON.stringify({ argv });
  const agentArgvRequest = agentCall({ argv });
  const argvSides: [Side, Side] = [
    { name: "berth", run: () => berth.exec(id, argvCall) },
    { name: "direct", run: () => direct.exec(agentArgvRequest) },
  ];
  return [
    await latency(bench, sides, {
      row: "exec of `sh -c true`, one at a time: median",
      ratioMax: latencyRatioMax,
    }),
    await throughput(bench, sides),
    await latency(bench, [{ ...sides[0], name: "quiet", quietMs }, sides[0]], {
      row: `exec of \`true\`, each after a pause of ${quietMs} ms, against without pauses: median`,
      ratioMax: afterQuietRatioMax,
      blocks: bench.isShort ? 4 : 10,
      each: 10,
    }),
    await latency(bench, argvSides, { row: "exec of `/bin/true`, one at a time: median" }),
  ];
}

/** Without `ratioMax` the figure is not judged. */
async function latency(
  bench: Bench,
  sides: [Side, Side],
  {
    row,
    ratioMax,
    blocks = bench.isShort ? 16 : 40,
    each = 25,
  }: { row: string; ratioMax?: number; blocks?: number; each?: number },
): Promise<Figure> {
  const samples: [number[], number[]] = [[], []];
  for (let block = 0; block < blocks; block += 1) {
    bench.progress.of(block, blocks, "one at a time, block");
    for (const side of orderIn(block)) {
      const { quietMs = 0 } = sides[side];
      for (let index = 0; index < each; index += 1) {
        if (quietMs > 0) await pause(quietMs);
        samples[side].push(await measureMs(sides[side]));
      }
    }
  }
  const [first, second] = [spread(samples[0]), spread(samples[1])];
  const ratio = median(samples[0]) / median(samples[1]);
  return {
    row,
    measured: `${first.median.toFixed(2)} ms against ${second.median.toFixed(2)} ms`,
    ...(ratioMax === undefined ? {} : { target: `≤ ${ratioMax} ×`, met: ratio <= ratioMax }),
    ratio: round(ratio),
    raw: { [sides[0].name]: first, [sides[1].name]: second },
  };
}

async function throughput(bench: Bench, sides: [Side, Side]): Promise<Figure> {
  const blocks = bench.isShort ? 6 : 10;
  const each = bench.isShort ? 200 : 800;
  const rates: [number[], number[]] = [[], []];
  for (let block = 0; block < blocks; block += 1) {
    bench.progress.of(block, blocks, `${concurrency} in parallel, block`);
    for (const side of orderIn(block)) rates[side].push(await commandsPerSecond(sides[side], each));
  }
  const [berth, direct] = [median(rates[0]), median(rates[1])];
  const ratio = berth / direct;
  return {
    row: `exec, ${concurrency} in parallel`,
    measured: `${berth.toFixed(0)}/s against ${direct.toFixed(0)}/s`,
    target: `≥ ${throughputRatioMin} ×`,
    ratio: round(ratio),
    met: ratio >= throughputRatioMin,
    raw: { berthPerSecond: rates[0].map(Math.round), directPerSecond: rates[1].map(Math.round) },
  };
}

/** Each side is first in every second block, so that side effects on the next side cancel out. */
function orderIn(block: number): readonly [0, 1] | readonly [1, 0] {
  return block % 2 === 0 ? [0, 1] : [1, 0];
}

async function measureMs(side: Side): Promise<number> {
  const startedAt = performance.now();
  const { exitCode } = await side.run();
  const ms = performance.now() - startedAt;
  if (exitCode !== 0) throw new Error(`${side.name}: a command ended with ${exitCode}`);
  return ms;
}

/** Returns commands per second. */
async function commandsPerSecond(side: Side, count: number): Promise<number> {
  const startedAt = performance.now();
  await parallel(count, concurrency, () => measureMs(side));
  return (count * 1000) / (performance.now() - startedAt);
}
