import { describe, expect, it } from "vitest";
import { explorePlans } from "./plan/explore.ts";
import type { Bounds, Hole } from "./plan/moves.ts";

describe("every state of a plan and its members, with messages lost, late and repeated", () => {
  it.each([
    ["two members, two runs", ["a", "b"], { runs: 2, breaks: 0, trees: 1 }],
    [
      "two members that are worked in and broken into",
      ["a", "b"],
      { runs: 1, breaks: 1, trees: 2 },
    ],
    ["three members", ["a", "b", "c"], { runs: 1, breaks: 0, trees: 1 }],
  ] as const)(
    "[Z9] is never half committed, and leaves no lease held: %s",
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

  // Each leads to a violation of its own, not to a move that throws.
  const oneRun: Bounds = { runs: 1, breaks: 0, trees: 1 };
  const holes: [Hole, Bounds, string][] = [
    ["members forget which runs have ended", { ...oneRun, runs: 2 }, "a lost its committed files"],
    [
      "the lease ends by time",
      { ...oneRun, trees: 2 },
      "a changed between its vote and its commit",
    ],
    ["an undecided run commits after a crash", oneRun, "run 1 is half committed"],
    ["the decision is sent before it is written", oneRun, "run 1 is half committed"],
    ["one no is not enough", oneRun, "run 1 left somebody behind"],
  ];

  it.each(holes)("[Z10] finds the shortest path to a violation if %s", (hole, bounds, fault) => {
    expect(() => explorePlans(["a", "b"], bounds, hole)).toThrow(`${fault}: begin a commit > `);
  });
});
