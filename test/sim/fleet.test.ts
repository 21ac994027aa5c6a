/** Plays histories of a Directory, plans and sandboxes together, and proves that breakages are found. */
import { afterAll, describe, expect, it } from "vitest";
import { fleetSeeds, groupsOf } from "./corpus.ts";
import { fleetBreakages, fleetFoundBy } from "./fleet/fleet-breakages.ts";
import { playFleet } from "./fleet/history.ts";
import { scriptOf } from "./fleet/script.ts";
import { type History, requireSound } from "./simulation.ts";
import { fleetMustReach, Tally } from "./tally.ts";

const groups = 2;
const seedsToFind = 400;

/** Seeds that once failed, and what they broke. */
const pinned: readonly [seed: number, what: string][] = [
  [24, "an alarm rings again and again while a report is on its way"],
  [181, "a late request to join arrives after the sandbox has left"],
  [45, "a late request to leave arrives when the sandbox is a member again"],
  [100156, "a sandbox joins a plan at the moment in which its end is decided"],
];

describe("a Directory, plans and sandboxes in a simulated world", () => {
  const tally = new Tally(fleetMustReach);
  // Not with console.log, which prints for failed tests only.
  afterAll(() => void process.stdout.write(`${tally.line}\n`));

  for (const seeds of groupsOf(fleetSeeds, groups)) {
    it(`[Z6] keeps plans whole, scopes single and lists true in the histories of ${seeds.length} seeds from ${seeds[0]} to ${seeds.at(-1)}`, async () => {
      for (const seed of seeds) tally.add(await playSound(seed));
    });
  }

  it("[Z7] reaches every kind of fault and response in these histories", () => {
    expect(tally.histories).toBe(fleetSeeds.length);
    expect(tally.missed).toEqual([]);
  });

  it.each(pinned)("[Z6] keeps every invariant in the history of seed %i: %s", async (seed) => {
    await playSound(seed);
  });

  it.each(fleetBreakages)(
    "[Z8] detects that %s, by a rule that it breaks",
    {
      timeout: 300_000,
    },
    async (breakage) => {
      const rules = fleetFoundBy[breakage];
      let isFound = false;
      for (let seed = 1; seed <= seedsToFind && !isFound; seed++) {
        const { violation } = await playFleet(scriptOf(seed), breakage);
        isFound = violation !== undefined && rules.includes(violation.rule);
      }
      expect(isFound, `no seed up to ${seedsToFind} breaks: ${rules.join(", ")}`).toBe(true);
    },
  );
});

async function playSound(seed: number): Promise<History> {
  return requireSound(await playFleet(scriptOf(seed)), seed, "--fleet ");
}
