/** How rows run what they measure: timed, in parallel, and in turns. */
import type { Bench } from "./figure.ts";

/** Returns the time in ms. */
export async function timed(work: () => Promise<unknown>): Promise<number> {
  const startedAt = performance.now();
  await work();
  return performance.now() - startedAt;
}

/** The times of `count` calls, one after the other. */
export async function timesOf(
  count: number,
  work: (index: number) => Promise<unknown>,
): Promise<number[]> {
  const times: number[] = [];
  for (let index = 0; index < count; index += 1) times.push(await timed(() => work(index)));
  return times;
}

/** Runs `count` calls, at most `concurrency` at once. */
export async function parallel<T>(
  count: number,
  concurrency: number,
  work: (index: number) => Promise<T>,
): Promise<T[]> {
  const results: T[] = new Array(count);
  let next = 0;
  const stream = async () => {
    for (let index = next++; index < count; index = next++) results[index] = await work(index);
  };
  await Promise.all(Array.from({ length: Math.min(concurrency, count) }, stream));
  return results;
}

/** Returns calls per second. */
export async function rateOf(
  count: number,
  concurrency: number,
  work: (index: number) => Promise<unknown>,
): Promise<number> {
  return (count * 1000) / (await timed(() => parallel(count, concurrency, work)));
}

/** Returns MB/s. */
export async function megabytesPerSecond(
  bytes: number,
  work: () => Promise<unknown>,
): Promise<number> {
  return bytes / 1000 / (await timed(work));
}

type Turns = { turns: number; each?: number; warmUps?: number };

/**
 * Calls the actions in turns, so that other load on the machine affects all of them, and returns what each call
 * measured. Every second turn has the opposite order, so that effects of one action on the next cancel out.
 */
export async function inTurns<Name extends string, Sample = number>(
  bench: Bench,
  what: string,
  { turns, each = 1, warmUps = 0 }: Turns,
  actions: Record<Name, () => Promise<Sample>>,
): Promise<Record<Name, Sample[]>> {
  const names = Object.keys(actions) as Name[];
  const samples = Object.fromEntries(names.map((name) => [name, []])) as unknown as Record<
    Name,
    Sample[]
  >;
  for (let turn = -warmUps; turn < turns; turn += 1) {
    bench.progress.of(Math.max(0, turn), turns, what);
    for (const name of turn % 2 === 0 ? names : names.toReversed()) {
      for (let index = 0; index < each; index += 1) {
        const sample = await actions[name]();
        if (turn >= 0) samples[name].push(sample);
      }
    }
  }
  return samples;
}
