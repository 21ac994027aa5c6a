/**
 * Plays a fixed set of seeds, proves that the same seed gives the same history, and that breakages are found.
 */
import { afterAll, describe, expect, it } from "vitest";
import { type Breakage, breakages } from "./breakages.ts";
import { type History, play } from "./history.ts";
import { planOf } from "./plan.ts";
import { shrink } from "./shrink.ts";
import { Tally } from "./tally.ts";

const groups = 10;
const seedsEach = 150;
/** A breakage that is not found within so many seeds would not be found by those who change the code either. */
const seedsToFind = 2_000;

/** Seeds that once failed, and what they broke. */
const pinned: readonly [seed: number, what: string][] = [
  [13, "a fence that grew for another call meets one on its way"],
  [25, "a caller goes away while its command is still being ended"],
  [27, "a pause ends what an earlier instance left running"],
  [263, "the clock steps back after a restart"],
  [278, "a crash ends the call that kept a lease alive"],
  [283, "a drain that is not confirmed must not keep the alarm from ringing"],
  [3403, "a push of the metadata is lost, and nothing changes after it"],
  [1472, "an agent that was silent for a while goes on with a command that nobody waits for"],
];

describe("the sandbox in a simulated world", () => {
  const tally = new Tally();
  // Not by the console, which tells of failed tests only.
  afterAll(() => void process.stdout.write(`${tally.line()}\n`));

  for (let group = 0; group < groups; group++) {
    const from = 1 + group * seedsEach;
    it(`[Z1] keeps every invariant in the histories of seeds ${from} to ${from + seedsEach - 1}`, async () => {
      for (let seed = from; seed < from + seedsEach; seed++) tally.add(await held(seed));
    });
  }

  it.each(pinned)("[Z1] keeps every invariant in the history of seed %i: %s", async (seed) => {
    await held(seed);
  });

  it("[Z2] has met every kind of fault, every state and every refusal in these histories", () => {
    expect(tally.histories).toBe(groups * seedsEach);
    expect(tally.missed).toEqual([]);
  });

  it("[Z3] has one history for one seed", async () => {
    for (const seed of [3, 41, 500]) {
      const first = await play(planOf(seed));
      const second = await play(planOf(seed));
      expect(first.steps).toBeGreaterThan(50);
      expect(second.trace).toEqual(first.trace);
    }
  });

  it.each(breakages)("[Z4] finds it when %s", async (breakage) => {
    const found = await firstFailure(breakage);
    expect(found, `no seed up to ${seedsToFind} shows it`).toBeDefined();
  });

  it("[Z5] tells a failure with fewer steps than it was found with", async () => {
    const breakage = "the agent ignores fences";
    const found = await firstFailure(breakage);
    if (found?.history.violation === undefined) throw new Error("the breakage was not found");
    const { rule } = found.history.violation;
    const { plan, history } = await shrink(planOf(found.seed), rule, breakage);
    expect(history.violation?.rule).toBe(rule);
    expect(plan.steps.length).toBeLessThan(planOf(found.seed).steps.length);
  });
});

async function held(seed: number): Promise<History> {
  const history = await play(planOf(seed));
  const { violation, trace } = history;
  if (violation !== undefined) {
    const { rule, message } = violation;
    const again = `npm run sim -- --from ${seed} --seeds 1`;
    throw new Error(`seed ${seed}: ${rule}: ${message}\n${again}\n${trace.slice(-30).join("\n")}`);
  }
  return history;
}

async function firstFailure(
  breakage: Breakage,
): Promise<{ seed: number; history: History } | undefined> {
  for (let seed = 1; seed <= seedsToFind; seed++) {
    const history = await play(planOf(seed), breakage);
    if (history.violation !== undefined) return { seed, history };
  }
  return undefined;
}
