/**
 * Owns how far one Directory goes: calls a second that it answers to 1, 16 and 64 clients, beside `GET /health` in the same
 * run, and what each call costs the server's processor. Does not own how its tables grow (directory.ts).
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

/** Of a block: so many calls, or so long. Each create leaves a file and, for ten seconds, descriptors. */
const blockMs = 800;
const shortBlockMs = 200;
const createsMax = 300;
const syncs = 50;

type Call = { what: string; max: number; ask(berth: Berth, at: number): Promise<void> };
type Block = { perSecond: number; cpuMs: number };

const sandboxes = "/v1/sandboxes";
const unnamed = { start: false };

function callsOn(ids: string[]): Call[] {
  return [
    { what: "health", max: Infinity, ask: (berth) => ok(berth, "GET", "/health") },
    {
      what: "look",
      max: Infinity,
      ask: (berth, at) => ok(berth, "GET", `${sandboxes}/${ids[at % scopes]}`),
    },
    { what: "find", max: Infinity, ask: (berth, at) => ok(berth, "POST", sandboxes, scoped(at)) },
    { what: "list", max: Infinity, ask: (berth) => ok(berth, "GET", `${sandboxes}?limit=${page}`) },
    { what: "create", max: createsMax, ask: (berth) => ok(berth, "POST", sandboxes, unnamed) },
  ];
}

export async function directoryLoad(bench: Bench): Promise<Figure[]> {
  const rounds = bench.isShort ? 1 : 3;
  const ms = bench.isShort ? shortBlockMs : blockMs;
  const berth = await Berth.start(bench);
  const ids = await parallel(scopes, 16, (at) => created(berth, scoped(at)));
  const calls = callsOn(ids);
  const syncMs = syncsIn(berth.data);
  const blocks = new Map<string, Block[]>();
  // In turns, so that what else the machine does meets all of them.
  for (let round = 0; round < rounds; round += 1) {
    for (const wide of clients) {
      for (const { what, max, ask } of calls) {
        bench.progress.say(`${what}, ${wide} at once`);
        const name = `${what} ${wide}`;
        const block = await measured(berth, { ms, max, wide, ask });
        blocks.set(name, [...(blocks.get(name) ?? []), block]);
      }
    }
  }
  const middle = (what: string, wide: number, key: keyof Block) =>
    median((blocks.get(`${what} ${wide}`) ?? []).map((block) => block[key]));
  const figures = calls.slice(1).flatMap(({ what }) =>
    clients.map((wide): Figure => {
      const [own, health] = [what, "health"].map((one) => middle(one, wide, "perSecond"));
      const ratio = (own ?? 0) / (health ?? 0);
      const cpuMs = round(middle(what, wide, "cpuMs"), 2);
      return {
        row: `${names[what]}, ${wide} at once: a second, against GET /health`,
        measured: `${own?.toFixed(0)} against ${health?.toFixed(0)}; ${cpuMs} ms of workerd each`,
        ratio: round(ratio),
        raw: { blocks: blocks.get(`${what} ${wide}`), health: blocks.get(`health ${wide}`) },
      };
    }),
  );
  const sync = `${round(median(syncMs), 2)} ms`;
  const row = "for comparison: one new file that the disk is asked to keep; a create needs several";
  return [...figures, { row, measured: sync, raw: { syncMs } }];
}

const names: Record<string, string> = {
  look: "look at one sandbox, no Directory",
  find: `find of one of ${scopes} scopes`,
  list: `list of ${page}`,
  create: "create without a container",
};

async function measured(
  berth: Berth,
  { ms, max, wide, ask }: { ms: number; max: number; wide: number; ask: Call["ask"] },
): Promise<Block> {
  const cpu = () => cpuSeconds([berth.workerd]).get(berth.workerd) ?? 0;
  const [cpuBefore, began] = [cpu(), performance.now()];
  let count = 0;
  const client = async () => {
    while (count < max && performance.now() - began < ms) await ask(berth, count++);
  };
  await Promise.all(Array.from({ length: wide }, client));
  const seconds = (performance.now() - began) / 1000;
  return { perSecond: count / seconds, cpuMs: ((cpu() - cpuBefore) * 1000) / count };
}

/** How long each of some new files on this disk takes until it is durable. */
function syncsIn(folder: string): number[] {
  return Array.from({ length: syncs }, (_, at) => {
    const began = performance.now();
    const fd = openSync(join(folder, `synced-${at}`), "w");
    writeSync(fd, `${at}`);
    fsyncSync(fd);
    closeSync(fd);
    return performance.now() - began;
  });
}

function scoped(at: number): object {
  return { start: false, scope: { repo: "github.com/bench/load", branch: `b${at % scopes}` } };
}

async function created(berth: Berth, body: object): Promise<string> {
  const { status, text } = await berth.http.call("POST", sandboxes, JSON.stringify(body));
  if (status >= 300) throw new Error(`create answered ${status}: ${text}`);
  return (JSON.parse(text) as { id: string }).id;
}

async function ok(berth: Berth, method: string, path: string, body?: object): Promise<void> {
  const text = body === undefined ? undefined : JSON.stringify(body);
  const { status } = await berth.http.call(method, path, text);
  if (status >= 300) throw new Error(`${method} ${path} answered ${status}`);
}
