/**
 * A clock for tests of the SDK: `sleep` is recorded and returns at once.
 */
import type { Clock } from "../../../src/client/index.ts";

export function recordingClock(): { clock: Clock; slept: number[] } {
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
