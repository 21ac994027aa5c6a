/**
 * Measures the throughput of one Directory: calls per second with 1, 16 and 64 clients, in turns with `GET /health`,
 * and the processor time of each call. See directory.ts for how its tables grow.
 */
import { closeSync, fsyncSync, openSync, writeSync } from "node:fs";
import { join } from "node:path";
import { Berth } from "../berth.ts";
import { type Bench, type Figure, median, round } from "../figure.ts";
import { parallel } from "../http.ts";
import { cpuSeconds } from "../processes.ts";

const clients = [1, 16, 64] as const;
const scopes = 64;
const page = 20;

/** A block ends after this time or this many calls. Each create leaves a file and, for ten seconds, descriptors. */
const blockMs = 800;
const shortBlockMs = 200;
const createsMax = 300;
const syncs = 50;

type Call = { what: string; max: number; send(berth: Berth, index: number): Promise<void> };
type Block = { perSecond: number; cpuMs: number };

const sandboxes = "/v1/sandboxes";
const unscoped = { start: false };

function callsOn(ids: string[]): Call[] {
  return [
    { what: "health", max: Infinity, send: (berth) => expectOk(berth, "GET", "/health") },
    {
      what: "get",
      max: Infinity,
      send: (berth, index) => expectOk(berth, "GET", `${sandboxes}/${ids[index % scopes]}`),
    },
    {
      what: "find",
      max: Infinity,
      send: (berth, index) => expectOk(berth, "POST", sandboxes, scopedBody(index)),
    },
    {
      what: "list",
      max: Infinity,
      send: (berth) => expectOk(berth, "GET", `${sandboxes}?limit=${page}`),
    },
    {
      what: "create",
      max: createsMax,
      send: (berth) => expectOk(berth, "POST", sandboxes, unscoped),
    },
  ];
}

export async function directoryLoad(bench: Bench): Promise<Figure[]> {
  const rounds = bench.isShort ? 1 : 3;
  const ms = bench.isShort ? shortBlockMs : blockMs;
  const berth = await Berth.start(bench);
  const ids = await parallel(scopes, 16, (index) => createSandbox(berth, scopedBody(index)));
  const calls = callsOn(ids);
  const syncMs = measureSyncs(berth.data);
  const blocks = new Map<string, Block[]>();
  // The calls take turns, so that other load on the machine affects all of them.
  for (let round = 0; round < rounds; round += 1) {
    for (const concurrency of clients) {
      for (const { what, max, send } of calls) {
        bench.progress.say(`${what}, ${concurrency} at once`);
        const name = `${what} ${concurrency}`;
        const block = await measureBlock(berth, { ms, max, concurrency, send });
        blocks.set(name, [...(blocks.get(name) ?? []), block]);
      }
    }
  }
  const medianOf = (what: string, concurrency: number, key: keyof Block) =>
    median((blocks.get(`${what} ${concurrency}`) ?? []).map((block) => block[key]));
  const figures = calls.slice(1).flatMap(({ what }) =>
    clients.map((concurrency): Figure => {
      const [own, health] = [what, "health"].map((name) =>
        medianOf(name, concurrency, "perSecond"),
      );
      const ratio = (own ?? 0) / (health ?? 0);
      const cpuMs = round(medianOf(what, concurrency, "cpuMs"), 2);
      return {
        row: `${names[what]}, ${concurrency} at once, against GET /health`,
        measured: `${own?.toFixed(0)}/s against ${health?.toFixed(0)}/s; ${cpuMs} ms of workerd each`,
        ratio: round(ratio),
        raw: {
          blocks: blocks.get(`${what} ${concurrency}`),
          health: blocks.get(`health ${concurrency}`),
        },
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
  {
    ms,
    max,
    concurrency,
    send,
  }: { ms: number; max: number; concurrency: number; send: Call["send"] },
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

async function createSandbox(berth: Berth, body: object): Promise<string> {
  const { status, text } = await berth.http.call("POST", sandboxes, JSON.stringify(body));
  if (status >= 300) throw new Error(`create returned ${status}: ${text}`);
  return (JSON.parse(text) as { id: string }).id;
}

async function expectOk(berth: Berth, method: string, path: string, body?: object): Promise<void> {
  const text = body === undefined ? undefined : JSON.stringify(body);
  const { status } = await berth.http.call(method, path, text);
  if (status >= 300) throw new Error(`${method} ${path} returned ${status}`);
}
