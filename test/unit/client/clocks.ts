/**
 * Owns the time of the SDK's tests: a sleep is noted, and over at once.
 */
import type { Clock } from "../../../src/client/index.ts";

export function noted(): { clock: Clock; slept: number[] } {
  const slept: number[] = [];
  let now = 0;
  const clock: Clock = {
    now: () => now,
    chance: () => 1,
    sleep: async (ms) => {
      slept.push(ms);
      now += ms;
    },
  };
  return { clock, slept };
}
