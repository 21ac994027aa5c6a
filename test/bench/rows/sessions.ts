/**
 * Measures one command in a session against the same command by exec, directly from the agent and through Berth.
 */
import type { ExecResult } from "../../../src/protocol/exec.ts";
import type { Session } from "../../../src/protocol/session.ts";
import { Berth } from "../berth.ts";
import { agentCall, DirectEngine } from "../direct.ts";
import { type Bench, type Figure, median, round, spread } from "../figure.ts";
import type { Http } from "../http.ts";

/** A builtin starts no process. */
const builtinRatioMax = 1;

type Run = () => Promise<number | null>;
/** `builtin` and `program` run in a session, `exec` without one. */
type Side = { name: string; exec: Run; builtin: Run; program: Run };

export async function sessions(bench: Bench): Promise<Figure[]> {
  const berth = await Berth.start(bench);
  const engine = await DirectEngine.start(bench);
  const id = await berth.create();
  const direct = await engine.create(4);
  const sides = [
    await sideOf("agent", direct.http, "/v1", (command) => agentCall({ command })),
    await sideOf("through Berth", berth.http, `/v1/sandboxes/${id}`, (command) =>
      JSON.stringify({ command }),
    ),
  ];
  const figures: Figure[] = [];
  for (const side of sides) figures.push(...(await measureSide(bench, side)));
  return figures;
}

async function sideOf(
  name: string,
  http: Http,
  path: string,
  callOf: (command: string) => string,
): Promise<Side> {
  const made = await http.call("POST", `${path}/sessions`, JSON.stringify(sessionCall));
  if (made.status !== 201) throw new Error(`a session returned ${made.status}: ${made.text}`);
  const { id } = JSON.parse(made.text) as Session;
  const run = (route: string, command: string) => {
    const body = callOf(command);
    return async () => {
      const { status, text } = await http.call("POST", `${path}${route}`, body);
      if (status !== 200) throw new Error(`${route} returned ${status}: ${text}`);
      return (JSON.parse(text) as ExecResult).exitCode;
    };
  };
  return {
    name,
    exec: run("/exec", "true"),
    builtin: run(`/sessions/${id}/exec`, ":"),
    program: run(`/sessions/${id}/exec`, "/bin/true"),
  };
}

const sessionCall = { id: "bench", commandTimeoutMs: 60_000 };

async function measureSide(bench: Bench, side: Side): Promise<Figure[]> {
  const blocks = bench.isShort ? 12 : 40;
  const each = 25;
  const runs = [side.exec, side.builtin, side.program] as const;
  const samples: [number[], number[], number[]] = [[], [], []];
  for (const run of runs) for (let index = 0; index < 4 * each; index += 1) await run();
  for (let block = 0; block < blocks; block += 1) {
    bench.progress.of(block, blocks, `${side.name}, block`);
    for (const kind of [0, 1, 2] as const) {
      for (let index = 0; index < each; index += 1) samples[kind].push(await measureMs(runs[kind]));
    }
  }
  const [exec, builtin, program] = samples;
  return [
    {
      ...comparison(`session, ${side.name}: \`:\` against exec of \`true\``, builtin, exec),
      target: `≤ ${builtinRatioMax} ×`,
      met: median(builtin) <= builtinRatioMax * median(exec),
    },
    comparison(`session, ${side.name}: \`/bin/true\` against exec of \`true\``, program, exec),
  ];
}

function comparison(row: string, samples: number[], against: number[]): Figure {
  const [session, exec] = [spread(samples), spread(against)];
  return {
    row,
    measured: `${session.median.toFixed(2)} ms against ${exec.median.toFixed(2)} ms`,
    ratio: round(median(samples) / median(against)),
    raw: { session, exec },
  };
}

async function measureMs(run: Run): Promise<number> {
  const startedAt = performance.now();
  const exitCode = await run();
  if (exitCode !== 0) throw new Error(`a command ended with ${exitCode}`);
  return performance.now() - startedAt;
}
