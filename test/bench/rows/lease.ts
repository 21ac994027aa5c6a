/**
 * Measures the lease: cycles per second over HTTP and by RPC, and the time of a hand-over.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { LeaseGranted, LeaseView } from "../../../src/protocol/lease.ts";
import { startSecondWorker } from "../../system/api/second-worker.ts";
import { Berth } from "../berth.ts";
import { type Bench, type Figure, median, percentile, round, spread } from "../figure.ts";
import { parallel } from "../http.ts";

const clients = 16;
const waiters = 50;
const httpPerSecondMin = 500;
const rpcPerSecondMin = 1000;
const handOverMsMax = 5;

/** Cycles by RPC, timed inside the calling Worker, so that the figure contains no HTTP. */
const callerSource = `
export default {
  async fetch(request, env) {
    const { cycles, clients } = await request.json();
    const { id } = await env.BERTH.create({ start: false });
    const startedAt = Date.now();
    let next = 0;
    const client = async (n) => {
      const sandbox = env.BERTH.sandbox(id);
      while (next++ < cycles) {
        const lease = await sandbox.acquireLease({ holder: "client " + n, waitMs: 25000 });
        await sandbox.releaseLease(lease.token);
      }
    };
    await Promise.all(Array.from({ length: clients }, (_, n) => client(n)));
    const ms = Date.now() - startedAt;
    await env.BERTH.sandbox(id).destroy();
    return Response.json({ value: { ms } });
  },
};`;

export async function lease(bench: Bench): Promise<Figure[]> {
  const berth = await Berth.start(bench);
  const id = await berth.create();
  return [await overHttp(bench, berth, id), await handOver(bench, berth, id), await byRpc(bench)];
}

async function overHttp(bench: Bench, berth: Berth, id: string): Promise<Figure> {
  const cycles = bench.isShort ? 400 : 4000;
  bench.progress.say(`${clients} clients take turns over HTTP`);
  await parallel(clients * 5, clients, (index) => cycle(berth, id, `client ${index % clients}`));
  const startedAt = performance.now();
  await parallel(cycles, clients, (index) => cycle(berth, id, `client ${index % clients}`));
  const perSecond = (cycles * 1000) / (performance.now() - startedAt);
  return {
    row: `lease acquire + release, ${clients} clients waiting, HTTP`,
    measured: `${perSecond.toFixed(0)}/s`,
    target: `≥ ${httpPerSecondMin}/s`,
    met: perSecond >= httpPerSecondMin,
    raw: { cycles, perSecond: round(perSecond, 1) },
  };
}

/** From sending the release until the next waiter receives its grant. */
async function handOver(bench: Bench, berth: Berth, id: string): Promise<Figure> {
  const rounds = bench.isShort ? 2 : 6;
  const samples: number[] = [];
  for (let round = 0; round < rounds; round++) {
    bench.progress.of(round, rounds, `${waiters} wait, round`);
    let released = 0;
    const first = await acquire(berth, id, "first");
    const queue = Array.from({ length: waiters }, async (_, n) => {
      const { token } = await acquire(berth, id, `waiter ${n}`);
      samples.push(performance.now() - released);
      released = performance.now();
      await release(berth, id, token);
    });
    while ((await getLease(berth, id)).waiterCount < waiters) await sleep(5);
    released = performance.now();
    await release(berth, id, first.token);
    await Promise.all(queue);
  }
  const ms = median(samples);
  return {
    row: `lease hand-over, ${waiters} waiting: median`,
    measured: `${ms.toFixed(2)} ms (p99 ${percentile(samples, 99).toFixed(2)} ms)`,
    target: `≤ ${handOverMsMax} ms`,
    met: ms <= handOverMsMax,
    raw: spread(samples),
  };
}

async function byRpc(bench: Bench): Promise<Figure> {
  const cycles = bench.isShort ? 500 : 5000;
  bench.progress.say(`${clients} clients take turns by RPC`);
  const worker = await startSecondWorker(callerSource);
  bench.ends(async () => {
    await worker[Symbol.asyncDispose]();
    return [];
  });
  await worker.send({ cycles: 200, clients });
  const { value, thrown } = await worker.send({ cycles, clients });
  if (value === undefined) throw new Error(`by RPC: ${JSON.stringify(thrown)}`);
  const perSecond = (cycles * 1000) / Number(value.ms);
  return {
    row: `lease acquire + release, ${clients} clients waiting, RPC`,
    measured: `${perSecond.toFixed(0)}/s`,
    target: `≥ ${rpcPerSecondMin}/s`,
    met: perSecond >= rpcPerSecondMin,
    raw: { cycles, perSecond: round(perSecond, 1) },
  };
}

async function cycle(berth: Berth, id: string, holder: string): Promise<void> {
  const { token } = await acquire(berth, id, holder);
  await release(berth, id, token);
}

async function acquire(berth: Berth, id: string, holder: string): Promise<LeaseGranted> {
  const body = JSON.stringify({ holder, waitMs: 25_000 });
  const { status, text } = await berth.http.call("POST", `/v1/sandboxes/${id}/lease`, body);
  if (status !== 201) throw new Error(`acquire returned ${status}: ${text}`);
  return JSON.parse(text) as LeaseGranted;
}

async function release(berth: Berth, id: string, token: string): Promise<void> {
  const path = `/v1/sandboxes/${id}/lease`;
  const { status, text } = await berth.http.call("DELETE", path, undefined, {
    "berth-lease": token,
  });
  if (status !== 200) throw new Error(`release returned ${status}: ${text}`);
}

async function getLease(berth: Berth, id: string): Promise<LeaseView> {
  const { text } = await berth.http.call("GET", `/v1/sandboxes/${id}/lease`);
  return JSON.parse(text) as LeaseView;
}
