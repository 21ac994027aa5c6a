/**
 * How joining the lease queue and handing the lease over grow with the number of waiters. See rows/lease.ts for the
 * judged figures.
 */
import type { LeaseGranted, LeaseQueued } from "../../../src/protocol/lease.ts";
import { Berth } from "../berth.ts";
import { type Bench, type Figure, inMs, median, round, spread } from "../figure.ts";
import type { Http } from "../http.ts";
import { berthLock, type Lock } from "../lock.ts";

/** The number of measured hand-overs: the queue must still be about as long as stated. */
const handOvers = 50;
const hangMs = 120_000;

export async function queueGrowth(bench: Bench): Promise<Figure[]> {
  const steps = bench.isShort ? [1, 100] : [1, 100, 1000];
  const berth = await Berth.start(bench);
  const id = await berth.create();
  const http = berth.connect(Math.max(...steps) + 8);
  bench.closes(() => http.close());
  const queue = { lock: berthLock(http, id), http, path: `/v1/sandboxes/${id}/lease` };
  const figures: Figure[] = [];
  let first: number | undefined;
  for (const waiters of steps) {
    const rounds = Math.ceil(handOvers / Math.min(waiters, handOvers) / (bench.isShort ? 5 : 1));
    const samples: Samples = { join: [], handOver: [] };
    for (let index = 0; index < rounds; index += 1) {
      bench.progress.of(index, rounds, `${waiters} wait, round`);
      await runRound(queue, waiters, samples);
    }
    const ms = median(samples.handOver);
    first ??= ms;
    figures.push({
      row: `growth: lease hand-over with ${waiters} waiting: median, p99`,
      measured: `${inMs(2)(ms)}, ${inMs(2)(spread(samples.handOver).p99)}; to join ${inMs(2)(median(samples.join))}`,
      ratio: round(ms / first),
      raw: { waiters, handOver: spread(samples.handOver), join: spread(samples.join) },
    });
  }
  return figures;
}

type Samples = { join: number[]; handOver: number[] };
type Queue = { lock: Lock; http: Http; path: string };

async function runRound(queue: Queue, waiters: number, samples: Samples): Promise<void> {
  const { lock } = queue;
  const first = await acquire(queue, waiters);
  let released = 0;
  let served = 0;
  const waiting = async (n: number) => {
    const token = await acquire(queue, n);
    if (served++ < handOvers) samples.handOver.push(performance.now() - released);
    released = performance.now();
    await lock.release(n, token);
  };
  const all: Promise<void>[] = [];
  for (let n = 0; n < waiters; n += 1) {
    const isLast = n === waiters - 1;
    // Waits now and then, and before the last call, until all earlier calls are queued: only the last one is timed.
    if (isLast || n % 50 === 0) await waitForWaiters(lock, n);
    const startedAt = performance.now();
    all.push(waiting(n));
    if (isLast) samples.join.push((await waitForWaiters(lock, waiters)) - startedAt);
  }
  released = performance.now();
  await lock.release(waiters, first);
  await Promise.all(all);
}

/** Returns the token. Repeats the call with its ticket when the time limit of one call is reached. */
async function acquire({ http, path }: Queue, client: number): Promise<string> {
  const limit = performance.now() + hangMs;
  const holder = `client ${client}`;
  let ticket: string | undefined;
  while (performance.now() < limit) {
    const call = { holder, waitMs: 25_000, queueMs: hangMs, ticket };
    const answer = await http.json<LeaseGranted | LeaseQueued>("POST", path, call);
    if ("token" in answer) return answer.token;
    ticket = answer.ticket;
  }
  throw new Error(`${holder} never got the lease`);
}

/** Returns the time at which that many clients were waiting. */
async function waitForWaiters(lock: Lock, waiters: number): Promise<number> {
  const limit = performance.now() + hangMs;
  while ((await lock.waiting()) < waiters) {
    if (performance.now() > limit) throw new Error(`${waiters} clients never waited`);
  }
  return performance.now();
}
