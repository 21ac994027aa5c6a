import { describe, expect, it } from "vitest";
import { acksPerMinute, faultsPerMinute, type RunCounts, shortfalls } from "./minimums.ts";

const minutes = 2;

/** Twice the least of each. */
function enough(): RunCounts {
  const twice = (least: Record<string, number>) =>
    Object.fromEntries(
      Object.entries(least).map(([name, perMinute]) => [name, Math.ceil(perMinute * minutes * 2)]),
    );
  const verbs = twice(acksPerMinute);
  const requested = Object.fromEntries(
    Object.entries(verbs).map(([verb, acks]) => [verb, acks * 2]),
  );
  const sum = (counts: Record<string, number>) =>
    Object.values(counts).reduce((all, count) => all + count, 0);
  return {
    ...{ calls: sum(requested), acks: sum(verbs), requested, verbs },
    ...{ faults: twice(faultsPerMinute), disk: true, reads: 100, streams: 12, completeStreams: 8 },
  };
}

describe("the minimums of a chaos run", () => {
  it("[CA17] are low: a slow machine reaches them, and a machine that cannot mount needs no full disk", () => {
    expect(shortfalls(enough(), minutes)).toEqual([]);
    const { "fill disk": _, ...faults } = enough().faults;
    expect(shortfalls({ ...enough(), faults, disk: false }, minutes)).toEqual([]);
    expect(shortfalls({ ...enough(), faults }, minutes)).toHaveLength(1);
  });

  it.each(Object.keys(acksPerMinute).filter((verb) => (acksPerMinute[verb] ?? 0) * minutes >= 1))(
    "[CA17] fail if no %s is acknowledged",
    (verb) => {
      const counts = enough();
      counts.verbs[verb] = 0;
      expect(shortfalls(counts, minutes).join()).toMatch(
        new RegExp(`calls of ${verb}, of \\d+: 0, `),
      );
    },
  );

  it.each(Object.keys(faultsPerMinute))("[CA17] fail without the fault: %s", (name) => {
    const counts = enough();
    delete counts.faults[name];
    expect(shortfalls(counts, minutes)).toEqual([expect.stringMatching(`of ${name}: 0, `)]);
  });

  it("[CA17] fail for a server that refuses everything after its first second, however fast", () => {
    const counts = enough();
    for (const verb of Object.keys(counts.requested)) {
      counts.requested[verb] = (counts.requested[verb] ?? 0) * 100;
    }
    counts.calls *= 100;
    const result = shortfalls(counts, minutes);
    expect(result.length).toBeGreaterThan(10);
    expect(result[0]).toMatch(/^acknowledged calls, of \d+: /);
  });

  it("[CA17] fail if nothing is compared, and if most streams have reported gaps", () => {
    expect(shortfalls({ ...enough(), reads: 3 }, minutes)).toHaveLength(1);
    expect(shortfalls({ ...enough(), completeStreams: 1 }, minutes)).toHaveLength(1);
    expect(shortfalls({ ...enough(), streams: 100 }, minutes)).toHaveLength(1);
  });
});
