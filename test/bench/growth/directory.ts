/**
 * How the Directory's response times grow with the number of its sandboxes. See rows/directory.ts for the judged
 * comparison.
 */
import { Berth } from "../berth.ts";
import { type Bench, type Figure, inMs, round, spread } from "../figure.ts";
import { multiply } from "../many-rows.ts";
import { parallel, timesOf } from "../measure.ts";

const few = 100;
const clients = 16;
const scope = { repo: "github.com/bench/growth", branch: "main" };

export async function directoryGrowth(bench: Bench): Promise<Figure[]> {
  const steps = bench.isShort ? [few, 10_000] : [few, 10_000, 100_000];
  const samples = bench.isShort ? 60 : 300;
  const data = bench.folder();
  const figures: Figure[] = [];
  let reached = 0;
  const first: Record<string, number> = {};
  for (const many of steps) {
    if (many > few) {
      multiply(data, reached, many);
      reached = many;
    }
    const berth = await Berth.start(bench, data);
    const create = (body: object) => berth.http.ok("POST", "/v1/sandboxes", body);
    if (many === few) {
      await parallel(few, clients, () => create({ start: false }));
      await create({ start: false, scope });
    }
    const calls = {
      "list of 100": () => berth.http.ok("GET", "/v1/sandboxes?limit=100"),
      "find by scope": () => create({ start: false, scope }),
    };
    for (const [what, call] of Object.entries(calls)) {
      bench.progress.say(`${what} among ${many}`);
      await timesOf(samples / 4, call);
      const times = spread(await timesOf(samples, call));
      first[what] ??= times.median;
      figures.push({
        row: `growth: ${what} among ${many} sandboxes: median, p99`,
        measured: `${inMs(2)(times.median)}, ${inMs(2)(times.p99)}`,
        ratio: round(times.median / first[what]),
        raw: { many, ...times },
      });
    }
    await berth.end();
  }
  return figures;
}
