/** Measures one command through Berth and directly from the agent, in turns. */
import { setTimeout as sleep } from "node:timers/promises";
import { agentCall, runDirectly, startBothSides } from "../direct.ts";
import { type Bench, comparison, type Figure, median, round } from "../figure.ts";
import { inTurns, rateOf, timed } from "../measure.ts";

const latencyRatioMax = 1.9;
const throughputRatioMin = 0.75;
const concurrency = 16;
const warmUp = 500;
/** Most commands come after a pause; a run without pauses hides what a pause costs. */
const quietMs = 100;
const afterQuietRatioMax = 3;

export async function exec(bench: Bench): Promise<Figure[]> {
  const { berth, id, direct } = await startBothSides(bench, concurrency);
  const sidesOf = (program: { command: string } | { argv: string[] }) => {
    const body = JSON.stringify(program);
    const agentBody = agentCall(program);
    return {
      berth: () => berth.run(id, body),
      direct: () => runDirectly({ http: direct }, agentBody),
    };
  };
  const sides = sidesOf({ command: "true" });
  // Runs without a shell.
  const argvSides = sidesOf({ argv: ["/bin/true"] });
  bench.progress.say("warming up");
  // A side that is not yet compiled by the JIT cannot be compared.
  for (const run of Object.values(sides)) await rateOf(warmUp, concurrency, run);
  const latency = (run: typeof sides) =>
    inTurns(
      bench,
      "one at a time, block",
      { turns: bench.isShort ? 16 : 40, each: 25 },
      { berth: () => timed(run.berth), direct: () => timed(run.direct) },
    );
  const afterQuiet = () =>
    inTurns(
      bench,
      "after pauses, block",
      { turns: bench.isShort ? 4 : 10, each: 10 },
      {
        quiet: async () => {
          await sleep(quietMs);
          return timed(sides.berth);
        },
        berth: () => timed(sides.berth),
      },
    );
  return [
    comparison("exec of `sh -c true`, one at a time: median", await latency(sides), {
      ratioMax: latencyRatioMax,
    }),
    await throughput(bench, sides),
    comparison(
      `exec of \`true\`, each after a pause of ${quietMs} ms, against without pauses: median`,
      await afterQuiet(),
      { ratioMax: afterQuietRatioMax },
    ),
    comparison("exec of `/bin/true`, one at a time: median", await latency(argvSides)),
  ];
}

async function throughput(
  bench: Bench,
  run: { berth: () => Promise<void>; direct: () => Promise<void> },
): Promise<Figure> {
  const each = bench.isShort ? 200 : 800;
  const rates = await inTurns(
    bench,
    `${concurrency} in parallel, block`,
    { turns: bench.isShort ? 6 : 10 },
    {
      berth: () => rateOf(each, concurrency, run.berth),
      direct: () => rateOf(each, concurrency, run.direct),
    },
  );
  const [berth, direct] = [median(rates.berth), median(rates.direct)];
  const ratio = berth / direct;
  return {
    row: `exec, ${concurrency} in parallel`,
    measured: `${berth.toFixed(0)}/s against ${direct.toFixed(0)}/s`,
    target: `≥ ${throughputRatioMin} ×`,
    ratio: round(ratio),
    met: ratio >= throughputRatioMin,
    raw: {
      berthPerSecond: rates.berth.map(Math.round),
      directPerSecond: rates.direct.map(Math.round),
    },
  };
}
