/**
 * How the Directory's response times grow with the number of its sandboxes. See rows/directory.ts for the judged
 * comparison.
 */
import { Berth } from "../berth.ts";
import { type Bench, type Figure, round, spread } from "../figure.ts";
import { parallel } from "../http.ts";
import { multiply } from "../many-rows.ts";

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
    if (many === few) {
      await parallel(few, clients, () => createSandbox(berth, { start: false }));
      await createSandbox(berth, { start: false, scope });
    }
    const calls = {
      "list of 100": () => expectOk(berth.http.call("GET", "/v1/sandboxes?limit=100")),
      "find by scope": () => createSandbox(berth, { start: false, scope }),
    };
    for (const [what, call] of Object.entries(calls)) {
      bench.progress.say(`${what} among ${many}`);
      for (let index = 0; index < samples / 4; index += 1) await call();
      const times: number[] = [];
      for (let index = 0; index < samples; index += 1) {
        const startedAt = performance.now();
        await call();
        times.push(performance.now() - startedAt);
      }
      const { median, p99 } = spread(times);
      first[what] ??= median;
      figures.push({
        row: `growth: ${what} among ${many} sandboxes: median, p99`,
        measured: `${median.toFixed(2)} ms, ${p99.toFixed(2)} ms`,
        ratio: round(median / first[what]),
        raw: { many, ...spread(times) },
      });
    }
    await berth.end();
  }
  return figures;
}

function createSandbox(berth: Berth, body: object): Promise<void> {
  return expectOk(berth.http.call("POST", "/v1/sandboxes", JSON.stringify(body)));
}

async function expectOk(call: Promise<{ status: number; text: string }>): Promise<void> {
  const { status, text } = await call;
  if (status >= 300) throw new Error(`returned ${status}: ${text}`);
}
