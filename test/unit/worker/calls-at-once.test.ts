import { describe, expect, it } from "vitest";
import { CallsAtOnce } from "../../../src/worker/calls-at-once.ts";

describe("calls at once", () => {
  it("[O45] of a tenant beyond its quota are refused by name, and those of others are not", () => {
    const calls = new CallsAtOnce();
    const leave = [calls.enter("a", 2), calls.enter("a", 2)];
    expect(() => calls.enter("a", 2)).toThrow(
      expect.objectContaining({ code: "too_many", facts: { quota: "callsAtOnce", max: 2 } }),
    );
    calls.enter("b", 1)();
    calls.enter("a")();
    leave[0]?.();
    leave[0]?.();
    const third = calls.enter("a", 2);
    expect(() => calls.enter("a", 2)).toThrow(/as many calls at once/);
    third();
    leave[1]?.();
    expect(calls.count).toBe(0);
  });

  it("[O45] of callers who have gone stop to count after a minute", () => {
    let now = 0;
    const calls = new CallsAtOnce(() => now);
    calls.enter("a", 1);
    now = 59_999;
    expect(() => calls.enter("a", 1)).toThrow();
    now = 60_000;
    const leave = calls.enter("a", 1);
    expect(calls.count).toBe(1);
    leave();
    expect(calls.count).toBe(0);
  });
});
