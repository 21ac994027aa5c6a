/**
 * How joining the lease queue and handing the lease over grow with the number of waiters. See rows/lease.ts for the
 * judged figures.
 */
import type { LeaseGranted, LeaseQueued, LeaseView } from "../../../src/protocol/lease.ts";
import { Berth } from "../berth.ts";
import { type Bench, type Figure, median, round, spread } from "../figure.ts";
import type { Http } from "../http.ts";

/** The number of measured hand-overs: the queue must still be about as long as stated. */
const handOvers = 50;
const hangMs = 120_000;

export async function queueGrowth(bench: Bench): Promise<Figure[]> {
  const steps = bench.isShort ? [1, 100] : [1, 100, 1000];
  const berth = await Berth.start(bench);
  const path = `/v1/sandboxes/${await berth.create()}/lease`;
  const http = berth.connect(berth.http.url, Math.max(...steps) + 8);
  bench.ends(async () => {
    http.close();
    return [];
  });
  const figures: Figure[] = [];
  let first: number | undefined;
  for (const waiters of steps) {
    const rounds = Math.ceil(handOvers / Math.min(waiters, handOvers) / (bench.isShort ? 5 : 1));
    const samples: Samples = { join: [], handOver: [] };
    for (let index = 0; index < rounds; index += 1) {
      bench.progress.of(index, rounds, `${waiters} wait, round`);
      await runRound(http, path, waiters, samples);
    }
    const ms = median(samples.handOver);
    first ??= ms;
    figures.push({
      row: `growth: lease hand-over with ${waiters} waiting: median, p99`,
      measured: `${ms.toFixed(2)} ms, ${spread(samples.handOver).p99.toFixed(2)} ms; to join ${median(samples.join).toFixed(2)} ms`,
      ratio: round(ms / first),
      raw: { waiters, handOver: spread(samples.handOver), join: spread(samples.join) },
    });
  }
  return figures;
}

type Samples = { join: number[]; handOver: number[] };

async function runRound(
  http: Http,
  path: string,
  waiters: number,
  samples: Samples,
): Promise<void> {
  const holder = await acquire(http, path, "first");
  let released = 0;
  let served = 0;
  const waiting = async (n: number) => {
    const { token } = await acquire(http, path, `waiter ${n}`);
    if (served++ < handOvers) samples.handOver.push(performance.now() - released);
    released = performance.now();
    await release(http, path, token);
  };
  const queue: Promise<void>[] = [];
  for (let n = 0; n < waiters; n += 1) {
    const isLast = n === waiters - 1;
    // Waits now and then, and before the last call, until all earlier calls are queued: only the last one is timed.
    if (isLast || n % 50 === 0) await waitForWaiters(http, path, n);
    const startedAt = performance.now();
    queue.push(waiting(n));
    if (isLast) samples.join.push((await waitForWaiters(http, path, waiters)) - startedAt);
  }
  released = performance.now();
  await release(http, path, holder.token);
  await Promise.all(queue);
}

/** Repeats the call with its ticket when the time limit of one call is reached. */
async function acquire(http: Http, path: string, holder: string): Promise<LeaseGranted> {
  const limit = performance.now() + hangMs;
  let ticket: string | undefined;
  while (performance.now() < limit) {
    const body = JSON.stringify({ holder, waitMs: 25_000, queueMs: hangMs, ticket });
    const { status, text } = await http.call("POST", path, body);
    if (status === 201) return JSON.parse(text) as LeaseGranted;
    if (status !== 202) throw new Error(`acquire returned ${status}: ${text}`);
    ticket = (JSON.parse(text) as LeaseQueued).ticket;
  }
  throw new Error(`${holder} never got the lease`);
}

async function release(http: Http, path: string, token: string): Promise<void> {
  const { status, text } = await http.call("DELETE", path, undefined, { "berth-lease": token });
  if (status !== 200) throw new Error(`release returned ${status}: ${text}`);
}

/** Returns the time at which that many clients were waiting. */
async function waitForWaiters(http: Http, path: string, waiters: number): Promise<number> {
  const limit = performance.now() + hangMs;
  for (;;) {
    const { text } = await http.call("GET", path);
    if ((JSON.parse(text) as LeaseView).waiterCount >= waiters) return performance.now();
    if (performance.now() > limit) throw new Error(`${waiters} clients never waited`);
  }
}
