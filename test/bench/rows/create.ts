/**
 * Owns the figures of a new sandbox: from the create call to the first command answered, and what of that
 * is the engine's, asked directly in turns. Does not own many at once (burst.ts, density.ts).
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
  const agentsCall = agentCall({ command: "true" });

  const throughBerth = async () => {
    const begun = performance.now();
    const id = await berth.create(0);
    const created = performance.now();
    const { exitCode } = await berth.exec(id, call);
    const answered = performance.now();
    if (exitCode !== 0) throw new Error(`the first command ended with ${exitCode}`);
    await berth.destroy(id);
    return { created: created - begun, answered: answered - begun, ended: ms(answered) };
  };
  const directly = async () => {
    const begun = performance.now();
    const sandbox = await engine.create();
    const created = performance.now();
    const { exitCode } = await sandbox.exec(agentsCall);
    const answered = performance.now();
    if (exitCode !== 0) throw new Error(`the first command ended with ${exitCode}`);
    await engine.destroy(sandbox);
    return { created: created - begun, answered: answered - begun, ended: ms(answered) };
  };

  for (let at = 0; at < warmUps; at += 1) {
    await throughBerth();
    await directly();
  }
  const rounds = bench.isShort ? 20 : 200;
  const through: Awaited<ReturnType<typeof throughBerth>>[] = [];
  const direct: typeof through = [];
  for (let at = 0; at < rounds; at += 1) {
    bench.progress.of(at, rounds, "round");
    through.push(await throughBerth());
    direct.push(await directly());
  }
  const answered = spread(through.map((it) => it.answered));
  const directAnswered = spread(direct.map((it) => it.answered));
  const raw = {
    berth: {
      created: spread(through.map((it) => it.created)),
      answered,
      destroyed: spread(through.map((it) => it.ended)),
    },
    engine: {
      started: spread(direct.map((it) => it.created)),
      answered: directAnswered,
      destroyed: spread(direct.map((it) => it.ended)),
    },
  };
  const judged = (met: boolean) => (bench.isShort ? {} : { met });
  return [
    {
      row: "create to first exec answered: median",
      measured: `${answered.median.toFixed(1)} ms`,
      target: `≤ ${medianMaxMs} ms`,
      ...judged(answered.median <= medianMaxMs),
      raw,
    },
    {
      row: "create to first exec answered: p99",
      measured: `${answered.p99.toFixed(1)} ms`,
      target: `≤ ${p99MaxMs} ms`,
      ...judged(answered.p99 <= p99MaxMs),
      raw: { answered },
    },
    {
      row: "the same, against the engine asked directly",
      measured: `${answered.median.toFixed(1)} ms against ${directAnswered.median.toFixed(1)} ms`,
      ratio: round(
        median(through.map((it) => it.answered)) / median(direct.map((it) => it.answered)),
      ),
      raw: {},
    },
  ];
}

function ms(since: number): number {
  return performance.now() - since;
}
