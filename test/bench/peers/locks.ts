/** Compares Berth's lease with the locks of other systems. */
import { type Bench, comparison, type Figure, median, round } from "../figure.ts";
import { cyclesPerSecond, handOverTimes, type Lock, lockClients, lockWaiters } from "../lock.ts";
import { inTurns } from "../measure.ts";

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
