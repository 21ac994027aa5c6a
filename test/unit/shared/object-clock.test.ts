/** The time of one object, while its wall clock is set. */
import { describe, expect, it } from "vitest";
import { ObjectClock } from "../../../src/objects/shared/object-clock.ts";

const hour = 60 * 60_000;
const startAt = Date.UTC(2030, 0, 1);

function newClock() {
  const wall = { now: startAt };
  return { wall, clock: new ObjectClock(() => wall.now) };
}

describe("the clock of an object", () => {
  it("[Q27] runs on from where it was when the wall clock steps back", () => {
    const { wall, clock } = newClock();
    wall.now += 5_000;
    expect(clock.now()).toBe(startAt + 5_000);
    wall.now -= hour;
    expect(clock.now()).toBe(startAt + 5_000);
    wall.now += 2_000;
    expect(clock.now()).toBe(startAt + 7_000);
  });

  it("[Q27] starts at the newest stored time and runs on, however far that is ahead", () => {
    const { wall, clock } = newClock();
    clock.startAt(startAt + 10 * 60_000);
    expect(clock.isAhead()).toBe(true);
    wall.now += 2_000;
    expect(clock.now()).toBe(startAt + 10 * 60_000 + 2_000);
    clock.startAt(startAt);
    expect(clock.now()).toBe(startAt + 10 * 60_000 + 2_000);
  });

  it("[Q27] sets an alarm by what is left until then, not by its own time", () => {
    const { wall, clock } = newClock();
    clock.startAt(startAt + hour);
    expect(clock.toWall(clock.now() + 2_000)).toBe(wall.now + 2_000);
    wall.now -= hour;
    expect(clock.toWall(clock.now() + 2_000)).toBe(wall.now + 2_000);
  });

  it("[Q27] moves by what was measured, where the wall clock stands still or jumps", () => {
    const { wall, clock } = newClock();
    const end = clock.measure(1_000);
    end(true);
    expect(clock.now()).toBe(startAt + 1_000);
    const endNext = clock.measure(1_000);
    wall.now += hour;
    expect(clock.now()).toBeLessThanOrEqual(startAt + 3_000);
    endNext(true);
    expect(clock.now()).toBeLessThanOrEqual(startAt + 3_000);
    wall.now += 500;
    expect(clock.now()).toBeLessThanOrEqual(startAt + 3_500);
    clock.measure(1_000)(false);
    wall.now += 5_000;
    expect(clock.now()).toBeGreaterThanOrEqual(startAt + 7_500);
  });
});
