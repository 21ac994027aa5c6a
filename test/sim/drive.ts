/**
 * Owns going on: step after step until something holds, time is over, or an invariant is broken.
 */
import type { World } from "./world.ts";

/** A run that needs more goes round in circles. */
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
    world.observer.stepped();
    if (schedule.steps > stepsMax) world.fail("work ends", `${stepsMax} steps, and no end`);
  }
  return false;
}
