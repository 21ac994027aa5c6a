import { describe, expect, it } from "vitest";
import { acksOfAMinute, faultsOfAMinute, type Happened, missing } from "./floors.ts";

const minutes = 2;

/** Twice the least of each. */
function enough(): Happened {
  const twice = (least: Record<string, number>) =>
    Object.fromEntries(
      Object.entries(least).map(([name, ofAMinute]) => [name, Math.ceil(ofAMinute * minutes * 2)]),
    );
  const verbs = twice(acksOfAMinute);
  const asked = Object.fromEntries(Object.entries(verbs).map(([verb, acks]) => [verb, acks * 2]));
  const sum = (counts: Record<string, number>) =>
    Object.values(counts).reduce((all, count) => all + count, 0);
  return {
    ...{ calls: sum(asked), acks: sum(verbs), asked, verbs },
    ...{ faults: twice(faultsOfAMinute), disk: true, reads: 100, streams: 12, wholeStreams: 8 },
  };
}

describe("how much a run of the chaos must do", () => {
  it("[CA17] is little: a slow machine does it, and one that may mount nothing needs no full disk", () => {
    expect(missing(enough(), minutes)).toEqual([]);
    const { "fill disk": _, ...faults } = enough().faults;
    expect(missing({ ...enough(), faults, disk: false }, minutes)).toEqual([]);
    expect(missing({ ...enough(), faults }, minutes)).toHaveLength(1);
  });

  it.each(Object.keys(acksOfAMinute).filter((verb) => (acksOfAMinute[verb] ?? 0) * minutes >= 1))(
    "[CA17] finds it when no %s is acknowledged",
    (verb) => {
      const happened = enough();
      happened.verbs[verb] = 0;
      expect(missing(happened, minutes).join()).toMatch(`of ${verb}: 0, `);
    },
  );

  it.each(Object.keys(faultsOfAMinute))("[CA17] finds it when nothing comes of: %s", (name) => {
    const happened = enough();
    delete happened.faults[name];
    expect(missing(happened, minutes)).toEqual([expect.stringMatching(`of ${name}: 0, `)]);
  });

  it("[CA17] finds a server that refuses everything after its first second, however fast it does", () => {
    const happened = enough();
    for (const verb of Object.keys(happened.asked)) {
      happened.asked[verb] = (happened.asked[verb] ?? 0) * 100;
    }
    happened.calls *= 100;
    const told = missing(happened, minutes);
    expect(told.length).toBeGreaterThan(10);
    expect(told[0]).toMatch(/^acknowledged of \d+ calls: /);
  });

  it("[CA17] finds it when nothing is compared, and when most streams have holes that are told", () => {
    expect(missing({ ...enough(), reads: 3 }, minutes)).toHaveLength(1);
    expect(missing({ ...enough(), wholeStreams: 1 }, minutes)).toHaveLength(1);
    expect(missing({ ...enough(), streams: 100 }, minutes)).toHaveLength(1);
  });
});
