/**
 * Measures the throughput of one Directory: calls per second with 1, 16 and 64 clients, in turns with `GET /health`,
 * and the processor time of each call. See directory.ts for how its tables grow.
 */
import { closeSync, fsyncSync, openSync, writeSync } from "node:fs";
import { join } from "node:path";
import { Berth } from "../berth.ts";
import { type Bench, type Figure, median, round } from "../figure.ts";
import { inTurns, parallel } from "../measure.ts";
import { cpuSeconds } from "../processes.ts";

const clients = [1, 16, 64] as const;
const scopes = 64;
const page = 20;

/** A block ends after this time or this many calls. Each create leaves a file and, for ten seconds, descriptors. */
const blockMs = 800;
const shortBlockMs = 200;
const createsMax = 300;
const syncs = 50;

type Call = { what: string; max?: number; send(berth: Berth, index: number): Promise<string> };
type Block = { perSecond: number; cpuMs: number };

const sandboxes = "/v1/sandboxes";

function callsOn(ids: string[]): Call[] {
  return [
    { what: "health", send: ({ http }) => http.ok("GET", "/health") },
    {
      what: "get",
      send: ({ http }, index) => http.ok("GET", `${sandboxes}/${ids[index % scopes]}`),
    },
    { what: "find", send: ({ http }, index) => http.ok("POST", sandboxes, scopedBody(index)) },
    { what: "list", send: ({ http }) => http.ok("GET", `${sandboxes}?limit=${page}`) },
    {
      what: "create",
      max: createsMax,
      send: ({ http }) => http.ok("POST", sandboxes, { start: false }),
    },
  ];
}

export async function directoryLoad(bench: Bench): Promise<Figure[]> {
  const ms = bench.isShort ? shortBlockMs : blockMs;
  const berth = await Berth.start(bench);
  const ids = await parallel(scopes, 16, async (index) => {
    const { id } = await berth.http.json<{ id: string }>("POST", sandboxes, scopedBody(index));
    return id;
  });
  const calls = callsOn(ids);
  const syncMs = measureSyncs(berth.data);
  const actions = clients.flatMap((concurrency) =>
    calls.map((call) => [
      `${call.what} ${concurrency}`,
      () => measureBlock(berth, call, { ms, concurrency }),
    ]),
  );
  const blocks: Record<string, Block[]> = await inTurns(
    bench,
    "blocks of calls, turn",
    { turns: bench.isShort ? 1 : 3 },
    Object.fromEntries(actions) as Record<string, () => Promise<Block>>,
  );
  const medianOf = (name: string, key: keyof Block) =>
    median((blocks[name] ?? []).map((block) => block[key]));
  const figures = calls.slice(1).flatMap(({ what }) =>
    clients.map((concurrency): Figure => {
      const [own, other] = [`${what} ${concurrency}`, `health ${concurrency}`];
      const [rate, health] = [medianOf(own, "perSecond"), medianOf(other, "perSecond")];
      const cpuMs = round(medianOf(own, "cpuMs"), 2);
      return {
        row: `${names[what]}, ${concurrency} at once, against GET /health`,
        measured: `${rate.toFixed(0)}/s against ${health.toFixed(0)}/s; ${cpuMs} ms of workerd each`,
        ratio: round(rate / health),
        raw: { blocks: blocks[own], health: blocks[other] },
      };
    }),
  );
  const sync = `${round(median(syncMs), 2)} ms`;
  const row = "for comparison: one new file, synced to disk; a create needs several";
  return [...figures, { row, measured: sync, raw: { syncMs } }];
}

const names: Record<string, string> = {
  get: "GET of a sandbox, without the Directory",
  find: `find of one of ${scopes} scopes`,
  list: `list of ${page}`,
  create: "create without a container",
};

async function measureBlock(
  berth: Berth,
  { send, max = Number.POSITIVE_INFINITY }: Call,
  { ms, concurrency }: { ms: number; concurrency: number },
): Promise<Block> {
  const cpu = () => cpuSeconds([berth.workerd]).get(berth.workerd) ?? 0;
  const [cpuBefore, startedAt] = [cpu(), performance.now()];
  let count = 0;
  const client = async () => {
    while (count < max && performance.now() - startedAt < ms) await send(berth, count++);
  };
  await Promise.all(Array.from({ length: concurrency }, client));
  const seconds = (performance.now() - startedAt) / 1000;
  return { perSecond: count / seconds, cpuMs: ((cpu() - cpuBefore) * 1000) / count };
}

/** The times until new files on this disk are durable. */
function measureSyncs(folder: string): number[] {
  return Array.from({ length: syncs }, (_, index) => {
    const startedAt = performance.now();
    const fd = openSync(join(folder, `synced-${index}`), "w");
    writeSync(fd, `${index}`);
    fsyncSync(fd);
    closeSync(fd);
    return performance.now() - startedAt;
  });
}

function scopedBody(index: number): object {
  return { start: false, scope: { repo: "github.com/bench/load", branch: `b${index % scopes}` } };
}
