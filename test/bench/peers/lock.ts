/**
 * Measures a lock, of Berth or of another system: cycles per second with competing clients, and the time of a
 * hand-over.
 */
import { type Bench, type Figure, median, round, spread } from "../figure.ts";
import { parallel } from "../http.ts";

const lockClients = 16;
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

/** The first lock is Berth's. The locks take turns, so that other load on the machine affects all of them. */
export async function compareLocks(bench: Bench, [berth, ...peers]: Lock[]): Promise<Figure[]> {
  if (berth === undefined) throw new Error("no lock to compare");
  const rounds = bench.isShort ? 2 : 5;
  const cycles = bench.isShort ? 200 : 1000;
  const rates = new Map<Lock, number[]>();
  const handOvers = new Map<Lock, number[]>();
  const all = [berth, ...peers];
  for (let index = -1; index < rounds; index += 1) {
    for (const lock of all) {
      bench.progress.of(index + 1, rounds, `${lock.name}, round`);
      const rate = await cyclesPerSecond(lock, cycles);
      const times = await handOverTimes(lock);
      // The first round is a warm-up.
      if (index < 0) continue;
      rates.set(lock, [...(rates.get(lock) ?? []), rate]);
      handOvers.set(lock, [...(handOvers.get(lock) ?? []), ...times]);
    }
  }
  const rateOf = (lock: Lock) => median(rates.get(lock) ?? []);
  const timeOf = (lock: Lock) => median(handOvers.get(lock) ?? []);
  return peers.flatMap((lock): Figure[] => [
    {
      row: `against ${lock.name}: acquire + release, ${lockClients} clients waiting`,
      measured: `${rateOf(berth).toFixed(0)}/s against ${rateOf(lock).toFixed(0)}/s`,
      ratio: round(rateOf(berth) / rateOf(lock)),
      raw: { berth: rates.get(berth), peer: rates.get(lock) },
    },
    {
      row: `against ${lock.name}: hand-over, ${lockWaiters} waiting: median`,
      measured: `${timeOf(berth).toFixed(2)} ms against ${timeOf(lock).toFixed(2)} ms`,
      ratio: round(timeOf(berth) / timeOf(lock)),
      raw: { berth: spread(handOvers.get(berth) ?? []), peer: spread(handOvers.get(lock) ?? []) },
    },
  ]);
}

async function cyclesPerSecond(lock: Lock, cycles: number): Promise<number> {
  const startedAt = performance.now();
  const each = Math.ceil(cycles / lockClients);
  await parallel(lockClients, lockClients, async (client) => {
    for (let index = 0; index < each; index += 1) {
      await lock.release(client, await lock.acquire(client));
    }
  });
  return (each * lockClients * 1000) / (performance.now() - startedAt);
}

/** From sending the release until the next waiter receives its grant. */
async function handOverTimes(lock: Lock): Promise<number[]> {
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
  }
  released = performance.now();
  await lock.release(lockWaiters, first);
  await Promise.all(queue);
  return samples;
}
