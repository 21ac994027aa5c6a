/**
 * Plays histories of a Directory, plans and sandboxes together, and proves that breakages are found.
 */
import { afterAll, describe, expect, it } from "vitest";
import { fleetSeeds, groupsOf } from "./corpus.ts";
import { fleetBreakages, fleetFoundBy } from "./fleet/fleet-breakages.ts";
import { type FleetHistory, playFleet } from "./fleet/history.ts";
import { faultNames, scriptOf } from "./fleet/script.ts";

const groups = 2;
const seedsToFind = 400;

/** What the histories must reach; otherwise the invariants were never tested. */
const mustReach = [
  ...faultNames.map((name) => `fault: ${name}`),
  "fault: a request arrives twice",
  "fault: lost: request between objects",
  "fault: crash: dead",
  "fault: crash: forgotten",
  "outcome: a decision: commit",
  "outcome: a decision: abort",
  "outcome: a decision: roll_back",
  "outcome: a plan was used again",
  "outcome: a plan was named",
  "answer: commit: committed",
  "answer: commit: aborted",
  "answer: commit: plan_busy",
  "answer: commit: nothing_to_commit",
  "answer: commit: lease_held",
  "answer: remove: lease_held",
  "answer: end: lease_held",
  "answer: rollback: rolled_back",
  "answer: rollback: nothing_to_roll_back",
  "answer: put: ok",
  "answer: put: in_other_plan",
  "answer: put: plan_busy",
  "answer: put: sandbox_destroyed",
  "answer: remove: ok",
  "answer: remove: plan_busy",
  "answer: end: ok",
  "answer: end: plan_busy",
  "answer: end: not_found",
  "answer: find: ok",
  "answer: find: lease_held",
  "outcome: one was replaced",
  "answer: list: ok",
];

/** Seeds that once failed, and what they broke. */
const pinned: readonly [seed: number, what: string][] = [
  [24, "an alarm rings again and again while a report is on its way"],
  [181, "a late request to join arrives after the sandbox has left"],
  [45, "a late request to leave arrives when the sandbox is a member again"],
  [100156, "a sandbox joins a plan at the moment in which its end is decided"],
];

describe("a Directory, plans and sandboxes in a simulated world", () => {
  const counts = new Map<string, number>();
  let histories = 0;
  let steps = 0;
  // Not with console.log, which prints for failed tests only.
  afterAll(() => {
    const commits = counts.get("answer: commit: committed") ?? 0;
    process.stdout.write(`${histories} histories of many, ${steps} steps, ${commits} commits\n`);
  });

  for (const seeds of groupsOf(fleetSeeds, groups)) {
    it(`[Z6] keeps plans whole, scopes single and lists true in the histories of ${seeds.length} seeds from ${seeds[0]} to ${seeds.at(-1)}`, async () => {
      for (const seed of seeds) {
        const history = await playSound(seed);
        histories++;
        steps += history.steps;
        for (const [name, count] of history.counts) {
          counts.set(name, (counts.get(name) ?? 0) + count);
        }
      }
    });
  }

  it("[Z7] reaches every kind of fault and response in these histories", () => {
    expect(histories).toBe(fleetSeeds.length);
    expect(mustReach.filter((name) => !counts.has(name))).toEqual([]);
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

async function playSound(seed: number): Promise<FleetHistory> {
  const history = await playFleet(scriptOf(seed));
  const { violation, trace } = history;
  if (violation === undefined) return history;
  const { rule, message } = violation;
  const command = `npm run sim -- --fleet --from ${seed} --seeds 1`;
  throw new Error(`seed ${seed}: ${rule}: ${message}\n${command}\n${trace.slice(-40).join("\n")}`);
}
