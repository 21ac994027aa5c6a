/** The timers that all waits of one object share. */
import { describe, expect, it } from "vitest";
import { Timers } from "../../../src/objects/shared/timers.ts";

/** A runtime with a virtual clock that counts its timers. `late`: how much later than due they fire. */
class Runtime {
  now = 5_000_000;
  offsetMs = 0;
  readonly pending: { due: number; then: () => void }[] = [];
  started = 0;

  clock = () => this.now + this.offsetMs;
  setTimer = (ms: number, then: () => void) => {
    expect(Number.isInteger(ms)).toBe(true);
    this.started += 1;
    this.pending.push({ due: this.now + ms, then });
  };

  /** Fires what is due, in order; each firing is delayed by `late`. */
  pass(ms: number, late = 0): void {
    const until = this.now + ms;
    for (;;) {
      this.pending.sort((left, right) => left.due - right.due);
      const next = this.pending[0];
      if (next === undefined || next.due + late > until) break;
      this.pending.shift();
      this.now = Math.max(this.now, next.due + late);
      next.then();
    }
    this.now = until;
  }
}

function made() {
  const runtime = new Runtime();
  const timers = new Timers(runtime);
  const rung: string[] = [];
  const wait = (name: string, ms: number) => timers.set(ms, () => rung.push(name));
  return { runtime, timers, rung, wait };
}

describe("the timers of one object", () => {
  it("[V18] ten thousand cancelled waits cost one runtime timer per 20 ms, and none stays pending", () => {
    const { runtime, rung, wait } = made();
    for (let n = 0; n < 10_000; n++) {
      const giveUp = wait("late", 15_000);
      runtime.pass(1);
      giveUp();
    }
    expect(runtime.started).toBeLessThanOrEqual(10_000 / 20 + 1);
    runtime.pass(20);
    expect(runtime.pending).toEqual([]);
    runtime.pass(60_000);
    expect(rung).toEqual([]);
  });

  it("[V18] a long wait costs one runtime timer per second, and keeps its object awake for at most as long again", () => {
    const { runtime, rung, wait } = made();
    const giveUp = wait("late", 60_000);
    runtime.pass(300);
    giveUp();
    runtime.pass(320);
    expect(runtime.pending).toEqual([]);
    wait("late", 60_000);
    runtime.pass(60_000);
    expect(rung).toEqual(["late"]);
    expect(runtime.started).toBeLessThan(80);
    expect(runtime.pending).toEqual([]);
  });

  it("[V18] each fires once at its time, short ones between long ones", () => {
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
    expect(runtime.pending).toEqual([]);
  });

  it("[V18] a wait that is cancelled by a firing one does not fire, and a wait started by it does", () => {
    const { runtime, rung, timers, wait } = made();
    timers.set(10, () => {
      giveUp();
      wait("again", 5);
    });
    const giveUp = wait("cancelled", 10);
    runtime.pass(100);
    expect(rung).toEqual(["again"]);
  });

  it("[V18] one that throws does not stop the others", () => {
    const { runtime, rung, timers, wait } = made();
    timers.set(10, () => {
      throw new Error("a fault");
    });
    wait("same time", 10);
    wait("later", 2_000);
    expect(() => runtime.pass(10)).toThrow("a fault");
    runtime.pass(5_000);
    expect(rung).toEqual(["same time", "later"]);
  });

  it.each([3_600_000, -3_600_000])(
    "[V18] a clock that is set by %i ms ends no wait early or late",
    (by) => {
      const { runtime, rung, wait } = made();
      wait("15 s", 15_000);
      runtime.pass(2_500);
      runtime.offsetMs = by;
      runtime.pass(10_500);
      expect(rung).toEqual([]);
      runtime.pass(4_000);
      expect(rung).toEqual(["15 s"]);
    },
  );

  it("[V18] late runtime timers do not add up", () => {
    const { runtime, rung, wait } = made();
    wait("15 s", 15_000);
    runtime.pass(14_999, 300);
    expect(rung).toEqual([]);
    runtime.pass(301, 300);
    expect(rung).toEqual(["15 s"]);
  });
});

/** As in workerd: clock and new timers stand still while the wall clock is behind; beats do not. */
class FrozenRuntime extends Runtime {
  #shown = 0;

  override clock = () => {
    this.#shown = Math.max(this.#shown, this.now + this.offsetMs);
    return this.#shown;
  };

  override setTimer = (ms: number, then: () => void) => {
    this.started += 1;
    const frozenMs = this.clock() - (this.now + this.offsetMs);
    this.pending.push({ due: this.now + ms + frozenMs, then });
  };

  startBeat = (ms: number, onBeat: (hasPassed: boolean) => void) => {
    const then = () => onBeat(true);
    this.pending.push({ due: this.now + ms, then });
  };
}

describe("the timers of one object in a runtime whose timers follow the wall clock", () => {
  it.each(["before", "after"])(
    "[Q27] beats end a wait that began %s the clock stepped back, a second late at most",
    (when) => {
      const runtime = new FrozenRuntime();
      const timers = new Timers(runtime);
      const rung: string[] = [];
      const wait = () => void timers.set(8_000, () => rung.push("8 s"));
      if (when === "before") wait();
      runtime.pass(100);
      runtime.offsetMs = -3_600_000;
      if (when === "after") wait();
      runtime.pass(7_800);
      expect(rung).toEqual([]);
      runtime.pass(1_300);
      expect(rung).toEqual(["8 s"]);
    },
  );

  it("[Q27] a call that measures no beat leaves the runtime's timers in force", () => {
    const runtime = new FrozenRuntime();
    const failing = Object.assign(runtime, {
      startBeat: (_ms: number, onBeat: (hasPassed: boolean) => void) => onBeat(false),
    });
    const timers = new Timers(failing);
    const rung: string[] = [];
    timers.set(2_000, () => rung.push("2 s"));
    runtime.pass(1_999);
    expect(rung).toEqual([]);
    runtime.pass(1);
    expect(rung).toEqual(["2 s"]);
  });
});
