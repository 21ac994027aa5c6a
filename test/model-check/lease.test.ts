import { describe, expect, it } from "vitest";
import { exploreLeases } from "./explore.ts";

describe("every state of two clients, callers without a lease, lost and late messages", () => {
  it("[Q24] never runs work of two leases at once, never lowers a fence, and lets nobody wait forever", {
    timeout: 300_000,
  }, () => {
    const { states, transitions, held, draining } = exploreLeases(["ann", "bob"]);
    console.log(`lease model: ${states} states, ${transitions} transitions, no violation`);
    expect(states).toBeGreaterThan(100_000);
    expect(transitions).toBeGreaterThan(states);
    expect(held).toBeGreaterThan(1_000);
    expect(draining).toBeGreaterThan(1_000);
  });
});
