/**
 * Owns how the Directory's answers grow with the number of sandboxes that it knows.
 * Does not own the promise that they do not, measured in turns (rows/directory.ts).
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
      await parallel(few, clients, () => made(berth, { start: false }));
      await made(berth, { start: false, scope });
    }
    const asks = {
      "list of 100": () => ok(berth.http.call("GET", "/v1/sandboxes?limit=100")),
      "find by scope": () => made(berth, { start: false, scope }),
    };
    for (const [what, ask] of Object.entries(asks)) {
      bench.progress.say(`${what} among ${many}`);
      for (let at = 0; at < samples / 4; at += 1) await ask();
      const times: number[] = [];
      for (let at = 0; at < samples; at += 1) {
        const begun = performance.now();
        await ask();
        times.push(performance.now() - begun);
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

function made(berth: Berth, body: object): Promise<void> {
  return ok(berth.http.call("POST", "/v1/sandboxes", JSON.stringify(body)));
}

async function ok(call: Promise<{ status: number; text: string }>): Promise<void> {
  const { status, text } = await call;
  if (status >= 300) throw new Error(`answered ${status}: ${text}`);
}
