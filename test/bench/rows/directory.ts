/**
 * Owns the figures of a tenant's Directory: lists, finds and creates among a hundred sandboxes and among many.
 */
import { Berth } from "../berth.ts";
import { type Bench, type Figure, round } from "../figure.ts";
import { parallel } from "../http.ts";

const few = 100;
const listRatioMax = 1.5;
const samples = 200;
const clients = 16;

export async function directory(bench: Bench): Promise<Figure[]> {
  const berth = await Berth.start(bench);
  const many = bench.isShort ? 500 : 2_000;
  await fill(bench, berth, few);
  const small = await measure(bench, berth, few);
  const perSecond = await fill(bench, berth, many - few);
  const large = await measure(bench, berth, many);
  const row = (what: string, key: keyof Times, max?: number): Figure => ({
    row: `${what} among ${many} sandboxes, against among ${few}`,
    measured: `${round(large[key])} ms against ${round(small[key])} ms`,
    ratio: round(large[key] / small[key]),
    ...(max === undefined ? {} : { target: `≤ ${max} ×`, met: large[key] / small[key] <= max }),
    raw: { large: large[key], small: small[key] },
  });
  return [
    row("list of 100", "list", listRatioMax),
    row("list by metadata", "filtered", listRatioMax),
    row("find by scope", "find"),
    row("create", "create"),
    {
      row: `create without a container, ${clients} clients`,
      measured: `${perSecond.toFixed(0)}/s`,
      raw: { perSecond },
    },
  ];
}

type Times = { list: number; filtered: number; find: number; create: number };

async function fill(bench: Bench, berth: Berth, count: number): Promise<number> {
  const begun = performance.now();
  let done = 0;
  await parallel(count, clients, async (at) => {
    const mark = at % 1000 === 0 ? "rare" : "usual";
    await created(berth, { start: false, metadata: { mark, n: String(at) } });
    if (++done % 1000 === 0) bench.progress.say(`${done} of ${count} sandboxes made`);
  });
  return (count * 1000) / (performance.now() - begun);
}

async function measure(bench: Bench, berth: Berth, among: number): Promise<Times> {
  bench.progress.say(`lists and finds among ${among}`);
  const scope = { repo: "github.com/bench/find", branch: "main" };
  await created(berth, { start: false, scope });
  return {
    list: await median(() => ok(berth.http.call("GET", "/v1/sandboxes?limit=100"))),
    filtered: await median(() =>
      ok(berth.http.call("GET", "/v1/sandboxes?limit=1&metadata=mark%3Drare")),
    ),
    find: await median(() => created(berth, { start: false, scope })),
    create: await median(() => created(berth, { start: false })),
  };
}

async function median(work: () => Promise<unknown>): Promise<number> {
  const times: number[] = [];
  for (let n = 0; n < samples; n++) {
    const begun = performance.now();
    await work();
    times.push(performance.now() - begun);
  }
  return times.sort((a, b) => a - b)[samples / 2] ?? 0;
}

function created(berth: Berth, body: object): Promise<void> {
  return ok(berth.http.call("POST", "/v1/sandboxes", JSON.stringify(body)));
}

async function ok(call: Promise<{ status: number }>): Promise<void> {
  const { status } = await call;
  if (status >= 300) throw new Error(`answered ${status}`);
}
