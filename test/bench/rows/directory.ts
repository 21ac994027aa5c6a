/**
 * Measures a tenant's Directory: lists, finds and creates among a hundred sandboxes and among many.
 */
import { Berth } from "../berth.ts";
import { type Bench, type Figure, median, round } from "../figure.ts";
import { parallel } from "../http.ts";
import { multiply } from "../many-rows.ts";

const few = 100;
const listRatioMax = 1.5;
const samples = 200;
const clients = 16;

export async function directory(bench: Bench): Promise<Figure[]> {
  const many = bench.isShort ? 20_000 : 100_000;
  const seed = await Berth.start(bench);
  await fill(bench, seed, few);
  await seed.end();
  bench.progress.say(`rows for ${many} sandboxes`);
  multiply(seed.data, 0, many);
  const among = { small: await Berth.start(bench), large: await Berth.start(bench, seed.data) };
  const perSecond = await fill(bench, among.small, few);
  const { small, large } = await measure(bench, among);
  const row = (what: string, key: keyof Times, max?: number): Figure => ({
    row: `${what} among ${many} sandboxes, against among ${few}`,
    measured: `${round(large[key])} ms against ${round(small[key])} ms`,
    ratio: round(large[key] / small[key]),
    ...(max === undefined ? {} : { target: `≤ ${max} ×`, met: large[key] / small[key] <= max }),
    raw: { large: large[key], small: small[key] },
  });
  return [
    row("list of 100", "list", listRatioMax),
    row("list of 100 in two states", "states", listRatioMax),
    row("list by metadata", "filtered", listRatioMax),
    row("find by scope", "find"),
    row("create", "create"),
    row("count", "count"),
    {
      row: `create without a container, ${clients} clients`,
      measured: `${perSecond.toFixed(0)}/s`,
      raw: { perSecond },
    },
  ];
}

type Times = Record<"list" | "states" | "filtered" | "find" | "create" | "count", number>;

async function fill(bench: Bench, berth: Berth, count: number): Promise<number> {
  const startedAt = performance.now();
  let done = 0;
  await parallel(count, clients, async (index) => {
    const mark = index % 1000 === 0 ? "rare" : "usual";
    await createSandbox(berth, { start: false, metadata: { mark, n: String(index) } });
    bench.progress.of(++done, count, "sandbox");
  });
  return (count * 1000) / (performance.now() - startedAt);
}

/** Both sides take turns, so that other load on the machine affects both. */
async function measure(
  bench: Bench,
  { small, large }: { small: Berth; large: Berth },
): Promise<{ small: Times; large: Times }> {
  const scope = { repo: "github.com/bench/find", branch: "main" };
  const lists = "/v1/sandboxes?limit=100";
  const calls: Record<keyof Times, (berth: Berth) => Promise<void>> = {
    find: (berth) => createSandbox(berth, { start: false, scope }),
    list: (berth) => expectOk(berth.http.call("GET", lists)),
    states: (berth) => expectOk(berth.http.call("GET", `${lists}&state=running,paused`)),
    filtered: (berth) =>
      expectOk(berth.http.call("GET", "/v1/sandboxes?limit=1&metadata=mark%3Drare")),
    create: (berth) => createSandbox(berth, { start: false }),
    count: (berth) => expectOk(berth.http.call("GET", "/v1/counts")),
  };
  const times = { small: {} as Times, large: {} as Times };
  for (const [what, call] of Object.entries(calls) as [keyof Times, (typeof calls)["list"]][]) {
    const samplesOf = { small: [] as number[], large: [] as number[] };
    for (let n = 0; n < samples; n++) {
      bench.progress.of(n, samples, what);
      samplesOf.small.push(await measureMs(() => call(small)));
      samplesOf.large.push(await measureMs(() => call(large)));
    }
    times.small[what] = median(samplesOf.small);
    times.large[what] = median(samplesOf.large);
  }
  return times;
}

async function measureMs(work: () => Promise<void>): Promise<number> {
  const startedAt = performance.now();
  await work();
  return performance.now() - startedAt;
}

function createSandbox(berth: Berth, body: object): Promise<void> {
  return expectOk(berth.http.call("POST", "/v1/sandboxes", JSON.stringify(body)));
}

async function expectOk(call: Promise<{ status: number }>): Promise<void> {
  const { status } = await call;
  if (status >= 300) throw new Error(`returned ${status}`);
}
