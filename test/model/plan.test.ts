import { describe, expect, it } from "vitest";
import { explorePlans } from "./plan/explore.ts";
import type { Bounds, Hole } from "./plan/moves.ts";

describe("every world of a plan and its members, with messages lost, late and repeated", () => {
  it.each([
    ["two members, two runs", ["a", "b"], { runs: 2, breaks: 0, trees: 1 }],
    [
      "two members that are worked in and broken into",
      ["a", "b"],
      { runs: 1, breaks: 1, trees: 2 },
    ],
    ["three members", ["a", "b", "c"], { runs: 1, breaks: 0, trees: 1 }],
  ] as const)(
    "[Z9] is never half committed, nor leaves anybody held: %s",
    { timeout: 300_000 },
    (_name, names, bounds) => {
      const { states, transitions, committed, aborted } = explorePlans(names, bounds);
      console.log(`plan model: ${states} states, ${transitions} transitions, no violation`);
      expect(states).toBeGreaterThan(10_000);
      expect(transitions).toBeGreaterThan(states);
      expect(committed).toBeGreaterThan(100);
      expect(aborted).toBeGreaterThan(100);
    },
  );

  const holes: [Hole, Bounds][] = [
    ["members forget which runs are over", { runs: 2, breaks: 0, trees: 1 }],
    ["the lease ends by time", { runs: 1, breaks: 0, trees: 2 }],
    ["an undecided run commits after a crash", { runs: 1, breaks: 0, trees: 1 }],
    ["the decision is told before it is written", { runs: 1, breaks: 0, trees: 1 }],
    ["one no is not enough", { runs: 1, breaks: 0, trees: 1 }],
  ];

  it.each(holes)("[Z10] finds the shortest way to a fault where %s", (hole, bounds) => {
    expect(() => explorePlans(["a", "b"], bounds, hole)).toThrow(" > ");
  });
});
