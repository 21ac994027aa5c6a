/**
 * Owns the figures of one command: through Berth, and asked of the agent directly, in turns.
 * Does not own the commands' rightness beyond their exit code (streams.ts).
 */
import { setTimeout as pause } from "node:timers/promises";
import { Berth } from "../berth.ts";
import { agentCall, DirectEngine } from "../direct.ts";
import { type Bench, type Figure, median, round, spread } from "../figure.ts";
import { parallel } from "../http.ts";

const latencyRatioMax = 1.9;
const throughputRatioMin = 0.75;
const wide = 16;
const warmUp = 500;
/** Most commands of people and agents come so; a run without pauses hides what a pause costs. */
const quietMs = 100;
const afterQuietRatioMax = 3;
const command = "true";
/** Without a shell. */
const argv = ["/bin/true"];

/** `quietMs`: before each, which is not counted. */
type Side = { name: string; quietMs?: number; run(): Promise<{ exitCode: number | null }> };

export async function exec(bench: Bench): Promise<Figure[]> {
  const berth = await Berth.start(bench);
  const engine = await DirectEngine.start(bench);
  const id = await berth.create();
  const direct = await engine.create(wide);
  const call = JSON.stringify({ command });
  const agentsCall = agentCall({ command });
  const sides: [Side, Side] = [
    { name: "berth", run: () => berth.exec(id, call) },
    { name: "direct", run: () => direct.exec(agentsCall) },
  ];
  bench.progress.say("warming up");
  // A side that is still being compiled says nothing of the other.
  for (const side of sides) await inStreams(side, warmUp);
  const argvCall = JSON.stringify({ argv });
  const agentsArgvCall = agentCall({ argv });
  const argvSides: [Side, Side] = [
    { name: "berth", run: () => berth.exec(id, argvCall) },
    { name: "direct", run: () => direct.exec(agentsArgvCall) },
  ];
  return [
    await latency(bench, sides, {
      row: "exec of `sh -c true`, one at a time: median",
      ratioMax: latencyRatioMax,
    }),
    await throughput(bench, sides),
    await latency(bench, [{ ...sides[0], name: "quiet", quietMs }, sides[0]], {
      row: `exec of \`true\`, each after ${quietMs} ms of quiet, against in a row: median`,
      ratioMax: afterQuietRatioMax,
      blocks: bench.isShort ? 4 : 10,
      each: 10,
    }),
    await latency(bench, argvSides, { row: "exec of `/bin/true`, one at a time: median" }),
  ];
}

/** Without `ratioMax` there is nothing to judge. */
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
    for (const side of turnsIn(block)) {
      const { quietMs = 0 } = sides[side];
      for (let at = 0; at < each; at += 1) {
        if (quietMs > 0) await pause(quietMs);
        samples[side].push(await timed(sides[side]));
      }
    }
  }
  const [one, other] = [spread(samples[0]), spread(samples[1])];
  const ratio = median(samples[0]) / median(samples[1]);
  return {
    row,
    measured: `${one.median.toFixed(2)} ms against ${other.median.toFixed(2)} ms`,
    ...(ratioMax === undefined ? {} : { target: `≤ ${ratioMax} ×`, met: ratio <= ratioMax }),
    ratio: round(ratio),
    raw: { [sides[0].name]: one, [sides[1].name]: other },
  };
}

async function throughput(bench: Bench, sides: [Side, Side]): Promise<Figure> {
  const blocks = bench.isShort ? 6 : 10;
  const each = bench.isShort ? 200 : 800;
  const rates: [number[], number[]] = [[], []];
  for (let block = 0; block < blocks; block += 1) {
    bench.progress.of(block, blocks, `${wide} in parallel, block`);
    for (const side of turnsIn(block)) rates[side].push(await inStreams(sides[side], each));
  }
  const [berth, direct] = [median(rates[0]), median(rates[1])];
  const ratio = berth / direct;
  return {
    row: `exec, ${wide} in parallel: a second`,
    measured: `${berth.toFixed(0)} against ${direct.toFixed(0)}`,
    target: `≥ ${throughputRatioMin} ×`,
    ratio: round(ratio),
    met: ratio >= throughputRatioMin,
    raw: { berthPerSecond: rates[0].map(Math.round), directPerSecond: rates[1].map(Math.round) },
  };
}

/** Each is first in every second block: what the one leaves behind, the other finds as often. */
function turnsIn(block: number): readonly [0, 1] | readonly [1, 0] {
  return block % 2 === 0 ? [0, 1] : [1, 0];
}

async function timed(side: Side): Promise<number> {
  const begun = performance.now();
  const { exitCode } = await side.run();
  const ms = performance.now() - begun;
  if (exitCode !== 0) throw new Error(`${side.name}: a command ended with ${exitCode}`);
  return ms;
}

/** How many a second. */
async function inStreams(side: Side, count: number): Promise<number> {
  const begun = performance.now();
  await parallel(count, wide, () => timed(side));
  return (count * 1000) / (performance.now() - begun);
}
