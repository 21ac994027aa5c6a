/**
 * Runs the schedule step by step until a condition holds, the time is over, or an invariant is broken.
 */
import type { World } from "./world.ts";

/** A run with more steps does not make progress. */
const stepsMax = 60_000;

/** True when `done` holds. */
export async function drive(world: World, done: () => boolean, limitMs: number): Promise<boolean> {
  const { schedule } = world;
  const end = schedule.now + limitMs;
  while (world.violation === undefined) {
    if (done()) return true;
    const next = schedule.nextAt;
    if (next === undefined || next > end) return false;
    await schedule.step();
    world.observer.onStep();
    if (schedule.steps > stepsMax) world.fail("work ends", `${stepsMax} steps, and no end`);
  }
  return false;
}
