/** Measures a tenant's Directory: lists, finds and creates among a hundred sandboxes and among many. */
import { Berth } from "../berth.ts";
import { type Bench, comparison, type Figure, inMs } from "../figure.ts";
import { multiply } from "../many-rows.ts";
import { inTurns, rateOf, timed } from "../measure.ts";

const few = 100;
const listRatioMax = 1.5;
const samples = 200;
const clients = 16;
const sandboxes = "/v1/sandboxes";
const lists = `${sandboxes}?limit=100`;
const scope = { repo: "github.com/bench/find", branch: "main" };

type Call = { what: string; ratioMax?: number; send: (berth: Berth) => Promise<string> };

const calls: Call[] = [
  { what: "find by scope", send: (berth) => create(berth, { start: false, scope }) },
  { what: "list of 100", ratioMax: listRatioMax, send: ({ http }) => http.ok("GET", lists) },
  {
    what: "list of 100 in two states",
    ratioMax: listRatioMax,
    send: ({ http }) => http.ok("GET", `${lists}&state=running,paused`),
  },
  {
    what: "list by metadata",
    ratioMax: listRatioMax,
    send: ({ http }) => http.ok("GET", `${sandboxes}?limit=1&metadata=mark%3Drare`),
  },
  { what: "create", send: (berth) => create(berth, { start: false }) },
  { what: "count", send: ({ http }) => http.ok("GET", "/v1/counts") },
];

export async function directory(bench: Bench): Promise<Figure[]> {
  const many = bench.isShort ? 20_000 : 100_000;
  const seed = await Berth.start(bench);
  await fill(bench, seed);
  await seed.end();
  bench.progress.say(`rows for ${many} sandboxes`);
  multiply(seed.data, 0, many);
  const small = await Berth.start(bench);
  const large = await Berth.start(bench, seed.data);
  const perSecond = await fill(bench, small);
  const figures: Figure[] = [];
  for (const { what, ratioMax, send } of calls) {
    const times = await inTurns(
      bench,
      what,
      { turns: samples },
      { large: () => timed(() => send(large)), small: () => timed(() => send(small)) },
    );
    const row = `${what} among ${many} sandboxes, against among ${few}`;
    const judged = ratioMax === undefined ? {} : { ratioMax };
    figures.push(comparison(row, times, { ...judged, format: inMs(3) }));
  }
  return [
    ...figures,
    {
      row: `create without a container, ${clients} clients`,
      measured: `${perSecond.toFixed(0)}/s`,
      raw: { perSecond },
    },
  ];
}

/** Returns creates per second. */
async function fill(bench: Bench, berth: Berth): Promise<number> {
  return rateOf(few, clients, async (index) => {
    const mark = index % 1000 === 0 ? "rare" : "usual";
    await create(berth, { start: false, metadata: { mark, n: String(index) } });
    bench.progress.of(index, few, "sandbox");
  });
}

function create({ http }: Berth, body: object): Promise<string> {
  return http.ok("POST", sandboxes, body);
}
