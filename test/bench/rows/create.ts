/**
 * Measures a new sandbox: from the create call to the response of the first command, and the engine's share, called
 * directly in turns.
 */
import { Berth } from "../berth.ts";
import { agentCall, DirectEngine, runDirectly } from "../direct.ts";
import { type Bench, comparison, type Figure, inMs, spread, targetOf } from "../figure.ts";
import { inTurns } from "../measure.ts";

const medianMaxMs = 60;
const p99MaxMs = 250;
const warmUps = 5;

type Times = Record<"created" | "responded" | "destroyed", number>;

export async function create(bench: Bench): Promise<Figure[]> {
  const berth = await Berth.start(bench);
  const engine = await DirectEngine.start(bench);
  const call = JSON.stringify({ command: "true" });
  const agentRequest = agentCall({ command: "true" });
  const times = await inTurns(
    bench,
    "round",
    { turns: bench.isShort ? 20 : 200, warmUps },
    {
      berth: () =>
        timesOfLife({
          create: () => berth.create(0),
          use: (id) => berth.run(id, call),
          destroy: (id) => berth.destroy(id),
        }),
      engine: () =>
        timesOfLife({
          create: () => engine.create(),
          use: (sandbox) => runDirectly(sandbox, agentRequest),
          destroy: (sandbox) => engine.destroy(sandbox),
        }),
    },
  );
  const responded = times.berth.map((sample) => sample.responded);
  const direct = times.engine.map((sample) => sample.responded);
  const { median, p99 } = spread(responded);
  return [
    {
      row: "create to response of first exec: median",
      measured: inMs(1)(median),
      ...targetOf(bench, median, medianMaxMs, "ms"),
      raw: { berth: spreads(times.berth), engine: spreads(times.engine) },
    },
    {
      row: "create to response of first exec: p99",
      measured: inMs(1)(p99),
      ...targetOf(bench, p99, p99MaxMs, "ms"),
      raw: { responded: spread(responded) },
    },
    comparison(
      "the same, against the engine called directly",
      { berth: responded, engine: direct },
      { format: inMs(1) },
    ),
  ];
}

async function timesOfLife<Sandbox>({
  create,
  use,
  destroy,
}: {
  create: () => Promise<Sandbox>;
  use: (sandbox: Sandbox) => Promise<void>;
  destroy: (sandbox: Sandbox) => Promise<void>;
}): Promise<Times> {
  const startedAt = performance.now();
  const sandbox = await create();
  const createdAt = performance.now();
  await use(sandbox);
  const respondedAt = performance.now();
  await destroy(sandbox);
  return {
    created: createdAt - startedAt,
    responded: respondedAt - startedAt,
    destroyed: performance.now() - respondedAt,
  };
}

function spreads(times: Times[]) {
  return {
    created: spread(times.map(({ created }) => created)),
    responded: spread(times.map(({ responded }) => responded)),
    destroyed: spread(times.map(({ destroyed }) => destroyed)),
  };
}
