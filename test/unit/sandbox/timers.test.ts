import { describe, expect, it } from "vitest";
import { Timers } from "../../../src/objects/shared/timers.ts";

/** A runtime that rings what has come due, and counts. `late`: how much later than asked. */
class Runtime {
  now = 5_000_000;
  set = 0;
  readonly asked: { at: number; then: () => void }[] = [];
  begun = 0;

  clock = () => this.now + this.set;
  later = (ms: number, then: () => void) => {
    expect(Number.isInteger(ms)).toBe(true);
    this.begun += 1;
    this.asked.push({ at: this.now + ms, then });
  };

  /** In order, as time passes; `late` holds up each. */
  pass(ms: number, late = 0): void {
    const until = this.now + ms;
    for (;;) {
      this.asked.sort((one, other) => one.at - other.at);
      const next = this.asked[0];
      if (next === undefined || next.at + late > until) break;
      this.asked.shift();
      this.now = Math.max(this.now, next.at + late);
      next.then();
    }
    this.now = until;
  }
}

function made() {
  const runtime = new Runtime();
  const timers = new Timers(runtime);
  const rung: string[] = [];
  const wait = (name: string, ms: number) => timers.wait(ms, () => rung.push(name));
  return { runtime, timers, rung, wait };
}

describe("the timers of one object", () => {
  it("[V18] ten thousand waits that are given up cost a timer in 20 ms, and none is left that does not ring", () => {
    const { runtime, rung, wait } = made();
    for (let n = 0; n < 10_000; n++) {
      const giveUp = wait("late", 15_000);
      runtime.pass(1);
      giveUp();
    }
    expect(runtime.begun).toBeLessThanOrEqual(10_000 / 20 + 1);
    runtime.pass(20);
    expect(runtime.asked).toEqual([]);
    runtime.pass(60_000);
    expect(rung).toEqual([]);
  });

  it("[V18] who waits for long costs a timer a second, and keeps his object awake for as long again at most", () => {
    const { runtime, rung, wait } = made();
    const giveUp = wait("late", 60_000);
    runtime.pass(300);
    giveUp();
    runtime.pass(320);
    expect(runtime.asked).toEqual([]);
    wait("late", 60_000);
    runtime.pass(60_000);
    expect(rung).toEqual(["late"]);
    expect(runtime.begun).toBeLessThan(80);
    expect(runtime.asked).toEqual([]);
  });

  it("[V18] each rings at its time and once, the short ones between the long ones", () => {
    const { runtime, rung, wait } = made();
    wait("15 s", 15_000);
    wait("20 ms", 20);
    runtime.pass(19);
    expect(rung).toEqual([]);
    runtime.pass(1);
    expect(rung).toEqual(["20 ms"]);
    wait("7 ms", 7);
    wait("3 ms", 3);
    wait("at once", 0);
    runtime.pass(0);
    expect(rung.slice(1)).toEqual(["at once"]);
    runtime.pass(7);
    expect(rung.slice(2)).toEqual(["3 ms", "7 ms"]);
    runtime.pass(15_000 - 27 - 1);
    expect(rung).toHaveLength(4);
    runtime.pass(1);
    expect(rung.slice(4)).toEqual(["15 s"]);
    expect(runtime.asked).toEqual([]);
  });

  it("[V18] who is given up by one that rings does not ring, and who waits anew in it does", () => {
    const { runtime, rung, timers, wait } = made();
    timers.wait(10, () => {
      giveUp();
      wait("anew", 5);
    });
    const giveUp = wait("given up", 10);
    runtime.pass(100);
    expect(rung).toEqual(["anew"]);
  });

  it("[V18] one that throws takes no other along", () => {
    const { runtime, rung, timers, wait } = made();
    timers.wait(10, () => {
      throw new Error("a fault");
    });
    wait("same time", 10);
    wait("later", 2_000);
    expect(() => runtime.pass(10)).toThrow("a fault");
    runtime.pass(5_000);
    expect(rung).toEqual(["same time", "later"]);
  });

  it.each([3_600_000, -3_600_000])(
    "[V18] a clock that is set by %i ms ends no wait early, nor ever late",
    (by) => {
      const { runtime, rung, wait } = made();
      wait("15 s", 15_000);
      runtime.pass(2_500);
      runtime.set = by;
      runtime.pass(10_500);
      expect(rung).toEqual([]);
      runtime.pass(4_000);
      expect(rung).toEqual(["15 s"]);
    },
  );

  it("[V18] timers that ring late do not add up", () => {
    const { runtime, rung, wait } = made();
    wait("15 s", 15_000);
    runtime.pass(14_999, 300);
    expect(rung).toEqual([]);
    runtime.pass(301, 300);
    expect(rung).toEqual(["15 s"]);
  });
});
