/**
 * Owns the one thing that is asked of each list of faults: nothing fails without a fault, and each fault is noticed by
 * the rules that it names.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Fault } from "./faults.ts";
import { type Outcome, Workshop } from "./mutant-copies.ts";

const sound = "sound";
const nameOf = (at: number) => `fault-${at}`;

/** `wide`: also by tests in files that hold many; of those only the ones of the rules that must notice are run. */
export function areNoticed(
  what: string,
  faults: readonly Fault[],
  passesMin: number,
  { wide = false } = {},
): void {
  let workshop: Workshop;
  let outcomes: Map<string, Outcome>;

  beforeAll(async () => {
    workshop = await Workshop.open({ wide });
    // The walk through the model takes its whole time over sound sources, and does so in its own test.
    const rules = new Set(faults.flatMap(({ by }) => by).filter((rule) => rule !== "Q24"));
    await workshop.copy(sound, [...rules]);
    for (const [at, fault] of faults.entries()) await workshop.copy(nameOf(at), fault.by, fault);
    outcomes = await workshop.run(wide ? [...rules] : undefined);
  }, 300_000);

  afterAll(() => workshop.close());

  describe(`deliberate faults in ${what}`, () => {
    it("[Q26] no test fails over the sources as they are", () => {
      const outcome = outcomes.get(sound);
      expect([...(outcome?.failed ?? ["nothing ran"])]).toEqual([]);
      expect(outcome?.passed.size).toBeGreaterThan(passesMin);
    });

    it.each(faults.map((fault, at) => ({ ...fault, at })))(
      "[Q26] is noticed: $name",
      ({ at, by }) => {
        const failed = outcomes.get(nameOf(at))?.failed ?? new Set();
        expect(by.filter((rule) => !failed.has(rule))).toEqual([]);
      },
    );
  });
}
