/**
 * Measures and compares locks, Berth's lease or that of another system: cycles per second with competing clients, and the time of a
 * hand-over.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { LeaseGranted, LeaseView } from "../../src/protocol/lease.ts";
import { type Bench, comparison, type Figure, median, round } from "./figure.ts";
import type { Http } from "./http.ts";
import { inTurns, parallel, timed } from "./measure.ts";

export const lockClients = 16;
export const lockWaiters = 50;

/** Clients are numbered; each has at most one call at a time. */
export type Lock = {
  name: string;
  acquire(client: number): Promise<string>;
  release(client: number, token: string): Promise<void>;
  /** The number of waiting clients. */
  waiting(): Promise<number>;
};

const hangMs = 60_000;

/** The lease of a sandbox, over HTTP as any client uses it. */
export function berthLock(http: Http, id: string): Lock {
  const path = `/v1/sandboxes/${id}/lease`;
  return {
    name: "Berth",
    async acquire(client) {
      const call = { holder: `client ${client}`, waitMs: 25_000 };
      const { token } = await http.json<LeaseGranted>("POST", path, call);
      if (token === undefined) throw new Error(`client ${client} had to wait for too long`);
      return token;
    },
    async release(_client, token) {
      await http.ok("DELETE", path, undefined, { "berth-lease": token });
    },
    waiting: async () => (await http.json<LeaseView>("GET", path)).waiterCount,
  };
}

export async function cyclesPerSecond(lock: Lock, cycles: number): Promise<number> {
  const each = Math.ceil(cycles / lockClients);
  const ms = await timed(() =>
    parallel(lockClients, lockClients, async (client) => {
      for (let index = 0; index < each; index += 1) {
        await lock.release(client, await lock.acquire(client));
      }
    }),
  );
  return (each * lockClients * 1000) / ms;
}

/** From sending the release until the next waiter receives its grant. */
export async function handOverTimes(lock: Lock): Promise<number[]> {
  const samples: number[] = [];
  let released = 0;
  const first = await lock.acquire(lockWaiters);
  const queue = Array.from({ length: lockWaiters }, async (_, client) => {
    const token = await lock.acquire(client);
    samples.push(performance.now() - released);
    released = performance.now();
    await lock.release(client, token);
  });
  const limit = performance.now() + hangMs;
  while ((await lock.waiting()) < lockWaiters) {
    if (performance.now() > limit) throw new Error(`${lock.name}: the queue did not fill`);
    await sleep(5);
  }
  released = performance.now();
  await lock.release(lockWaiters, first);
  await Promise.all(queue);
  return samples;
}

/** The first lock is Berth's. */
export async function compareLocks(bench: Bench, [berth, ...peers]: Lock[]): Promise<Figure[]> {
  if (berth === undefined) throw new Error("no lock to compare");
  const cycles = bench.isShort ? 200 : 1000;
  const measure = async (lock: Lock) => ({
    rate: await cyclesPerSecond(lock, cycles),
    times: await handOverTimes(lock),
  });
  const samples = await inTurns(
    bench,
    "locks, turn",
    { turns: bench.isShort ? 2 : 5, warmUps: 1 },
    Object.fromEntries([berth, ...peers].map((lock) => [lock.name, () => measure(lock)])),
  );
  const ratesOf = ({ name }: Lock) => (samples[name] ?? []).map(({ rate }) => rate);
  const timesOf = ({ name }: Lock) => (samples[name] ?? []).flatMap(({ times }) => times);
  return peers.flatMap((lock): Figure[] => {
    const [rate, peerRate] = [median(ratesOf(berth)), median(ratesOf(lock))];
    return [
      {
        row: `against ${lock.name}: acquire + release, ${lockClients} clients waiting`,
        measured: `${rate.toFixed(0)}/s against ${peerRate.toFixed(0)}/s`,
        ratio: round(rate / peerRate),
        raw: { berth: ratesOf(berth), peer: ratesOf(lock) },
      },
      comparison(`against ${lock.name}: hand-over, ${lockWaiters} waiting: median`, {
        berth: timesOf(berth),
        peer: timesOf(lock),
      }),
    ];
  });
}
