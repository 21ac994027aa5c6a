/**
 * Owns how a lock is measured, whoever gives it: cycles a second with clients in turn, and the time of a hand-over.
 * Does not own any of the locks.
 */
import { type Bench, type Figure, median, round, spread } from "../figure.ts";
import { parallel } from "../http.ts";

export const lockClients = 16;
export const lockWaiters = 50;

/** Clients are numbered; each has at most one call under way. */
export type Lock = {
  name: string;
  acquire(client: number): Promise<string>;
  release(client: number, token: string): Promise<void>;
  /** How many wait. */
  waiting(): Promise<number>;
};

const hangMs = 60_000;

/** Ours is the first. In turns, so that what else the machine does meets all of them. */
export async function compareLocks(bench: Bench, [ours, ...others]: Lock[]): Promise<Figure[]> {
  if (ours === undefined) throw new Error("no lock to compare");
  const rounds = bench.isShort ? 2 : 5;
  const cycles = bench.isShort ? 200 : 1000;
  const rates = new Map<Lock, number[]>();
  const handOvers = new Map<Lock, number[]>();
  const all = [ours, ...others];
  for (let at = -1; at < rounds; at += 1) {
    for (const lock of all) {
      bench.progress.of(at + 1, rounds, `${lock.name}, round`);
      const rate = await perSecond(lock, cycles);
      const times = await handedOver(lock);
      // The first round warms up.
      if (at < 0) continue;
      rates.set(lock, [...(rates.get(lock) ?? []), rate]);
      handOvers.set(lock, [...(handOvers.get(lock) ?? []), ...times]);
    }
  }
  const rateOf = (lock: Lock) => median(rates.get(lock) ?? []);
  const timeOf = (lock: Lock) => median(handOvers.get(lock) ?? []);
  return others.flatMap((lock): Figure[] => [
    {
      row: `beside ${lock.name}: acquire + release, ${lockClients} clients waiting`,
      measured: `${rateOf(ours).toFixed(0)} against ${rateOf(lock).toFixed(0)} a second`,
      ratio: round(rateOf(ours) / rateOf(lock)),
      raw: { ours: rates.get(ours), theirs: rates.get(lock) },
    },
    {
      row: `beside ${lock.name}: hand-over, ${lockWaiters} waiting: median`,
      measured: `${timeOf(ours).toFixed(2)} ms against ${timeOf(lock).toFixed(2)} ms`,
      ratio: round(timeOf(ours) / timeOf(lock)),
      raw: { ours: spread(handOvers.get(ours) ?? []), theirs: spread(handOvers.get(lock) ?? []) },
    },
  ]);
}

async function perSecond(lock: Lock, cycles: number): Promise<number> {
  const begun = performance.now();
  const each = Math.ceil(cycles / lockClients);
  await parallel(lockClients, lockClients, async (client) => {
    for (let at = 0; at < each; at += 1) {
      await lock.release(client, await lock.acquire(client));
    }
  });
  return (each * lockClients * 1000) / (performance.now() - begun);
}

/** From the release that is sent to the grant that the next one receives. */
async function handedOver(lock: Lock): Promise<number[]> {
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
