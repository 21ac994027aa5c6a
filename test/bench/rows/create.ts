/**
 * Measures a new sandbox: from the create call to the response of the first command, and the engine's share, called
 * directly in turns.
 */
import { Berth } from "../berth.ts";
import { agentCall, DirectEngine } from "../direct.ts";
import { type Bench, type Figure, median, round, spread } from "../figure.ts";

const medianMaxMs = 60;
const p99MaxMs = 250;
const warmUps = 5;

export async function create(bench: Bench): Promise<Figure[]> {
  const berth = await Berth.start(bench);
  const engine = await DirectEngine.start(bench);
  const call = JSON.stringify({ command: "true" });
  const agentRequest = agentCall({ command: "true" });

  const throughBerth = async () => {
    const startedAt = performance.now();
    const id = await berth.create(0);
    const created = performance.now();
    const { exitCode } = await berth.exec(id, call);
    const responded = performance.now();
    if (exitCode !== 0) throw new Error(`the first command ended with ${exitCode}`);
    await berth.destroy(id);
    return { created: created - startedAt, responded: responded - startedAt, ended: ms(responded) };
  };
  const directly = async () => {
    const startedAt = performance.now();
    const sandbox = await engine.create();
    const created = performance.now();
    const { exitCode } = await sandbox.exec(agentRequest);
    const responded = performance.now();
    if (exitCode !== 0) throw new Error(`the first command ended with ${exitCode}`);
    await engine.destroy(sandbox);
    return { created: created - startedAt, responded: responded - startedAt, ended: ms(responded) };
  };

  for (let index = 0; index < warmUps; index += 1) {
    await throughBerth();
    await directly();
  }
  const rounds = bench.isShort ? 20 : 200;
  const through: Awaited<ReturnType<typeof throughBerth>>[] = [];
  const direct: typeof through = [];
  for (let index = 0; index < rounds; index += 1) {
    bench.progress.of(index, rounds, "round");
    through.push(await throughBerth());
    direct.push(await directly());
  }
  const responded = spread(through.map((it) => it.responded));
  const directAnswered = spread(direct.map((it) => it.responded));
  const raw = {
    berth: {
      created: spread(through.map((it) => it.created)),
      responded,
      destroyed: spread(through.map((it) => it.ended)),
    },
    engine: {
      started: spread(direct.map((it) => it.created)),
      responded: directAnswered,
      destroyed: spread(direct.map((it) => it.ended)),
    },
  };
  const judged = (met: boolean) => (bench.isShort ? {} : { met });
  return [
    {
      row: "create to response of first exec: median",
      measured: `${responded.median.toFixed(1)} ms`,
      target: `≤ ${medianMaxMs} ms`,
      ...judged(responded.median <= medianMaxMs),
      raw,
    },
    {
      row: "create to response of first exec: p99",
      measured: `${responded.p99.toFixed(1)} ms`,
      target: `≤ ${p99MaxMs} ms`,
      ...judged(responded.p99 <= p99MaxMs),
      raw: { responded },
    },
    {
      row: "the same, against the engine called directly",
      measured: `${responded.median.toFixed(1)} ms against ${directAnswered.median.toFixed(1)} ms`,
      ratio: round(
        median(through.map((it) => it.responded)) / median(direct.map((it) => it.responded)),
      ),
      raw: {},
    },
  ];
}

function ms(since: number): number {
  return performance.now() - since;
}
