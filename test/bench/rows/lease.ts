/** Measures the lease: cycles per second over HTTP and by RPC, and the time of a hand-over. */
import { startSecondWorker } from "../../system/api/second-worker.ts";
import { Berth } from "../berth.ts";
import { type Bench, type Figure, inMs, rateFigure, spread } from "../figure.ts";
import {
  berthLock,
  lockClients as clients,
  cyclesPerSecond,
  handOverTimes,
  type Lock,
  lockWaiters,
} from "../lock.ts";

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
  const lock = berthLock(berth.http, await berth.create());
  return [await overHttp(bench, lock), await handOver(bench, lock), await byRpc(bench)];
}

async function overHttp(bench: Bench, lock: Lock): Promise<Figure> {
  bench.progress.say(`${clients} clients take turns over HTTP`);
  await cyclesPerSecond(lock, clients * 5);
  const perSecond = await cyclesPerSecond(lock, bench.isShort ? 400 : 4000);
  const row = `lease acquire + release, ${clients} clients waiting, HTTP`;
  return rateFigure(row, perSecond, httpPerSecondMin);
}

async function handOver(bench: Bench, lock: Lock): Promise<Figure> {
  const rounds = bench.isShort ? 2 : 6;
  const samples: number[] = [];
  for (let round = 0; round < rounds; round++) {
    bench.progress.of(round, rounds, `${lockWaiters} wait, round`);
    samples.push(...(await handOverTimes(lock)));
  }
  const { median, p99 } = spread(samples);
  return {
    row: `lease hand-over, ${lockWaiters} waiting: median`,
    measured: `${inMs(2)(median)} (p99 ${inMs(2)(p99)})`,
    target: `≤ ${handOverMsMax} ms`,
    met: median <= handOverMsMax,
    raw: spread(samples),
  };
}

async function byRpc(bench: Bench): Promise<Figure> {
  const cycles = bench.isShort ? 500 : 5000;
  bench.progress.say(`${clients} clients take turns by RPC`);
  const worker = await startSecondWorker(callerSource);
  bench.closes(() => worker[Symbol.asyncDispose]());
  await worker.send({ cycles: 200, clients });
  const { value, thrown } = await worker.send({ cycles, clients });
  if (value === undefined) throw new Error(`by RPC: ${JSON.stringify(thrown)}`);
  const row = `lease acquire + release, ${clients} clients waiting, RPC`;
  return rateFigure(row, (cycles * 1000) / Number(value.ms), rpcPerSecondMin);
}
