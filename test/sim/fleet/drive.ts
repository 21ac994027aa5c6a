/**
 * Runs a history step by step until a condition holds, the time is over, or an invariant is violated.
 */
import type { Fleet } from "./fleet.ts";

const stepsMax = 120_000;

/** True when `done` holds. */
export async function drive(fleet: Fleet, done: () => boolean, limitMs: number): Promise<boolean> {
  const { schedule } = fleet;
  const end = schedule.now + limitMs;
  while (fleet.violation === undefined) {
    if (done()) return true;
    const next = schedule.nextAt;
    if (next === undefined || next > end) return false;
    await schedule.step();
    fleet.stepped();
    if (schedule.steps > stepsMax) fleet.fail("work ends", `${stepsMax} steps, and no end`);
  }
  return false;
}
