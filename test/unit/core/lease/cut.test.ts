import { describe, expect, it } from "vitest";
import { heldByAnn, second } from "./harness.ts";

/** Ann runs two commands, bob waits, and ann's connection was cut. */
function annIsCut(graceMs = 3 * second) {
  const { harness, ann } = heldByAnn();
  harness.acquire("bob");
  harness.inFlight = { others: 0, own: 2 };
  harness.cut(ann, graceMs);
  return { harness, ann };
}

describe("a holder whose connection was cut", () => {
  it("[Q28] keeps lease and fence until its grace is over, and nobody overtakes", () => {
    const { harness, ann } = annIsCut();
    const { fence } = harness.lease;
    harness.after(3 * second - 1).tick();
    expect(harness.grant).toMatchObject({ token: ann, holder: "ann" });
    expect(harness.lease.fence).toBe(fence);
    expect(harness.check(ann)).toBe("passes");
    expect(harness.acquire("bob")).toBe("queued 0");
    expect(harness.acquire("eve")).toBe("queued 1");
  });

  it("[Q28] that returns in time continues as if nothing had happened", () => {
    const { harness, ann } = annIsCut();
    const before = harness.grant;
    expect(harness.after(2 * second).renew(ann)).toBe("granted");
    harness.after(20 * second).tick();
    expect(harness.grant).toEqual(before);
    expect(harness.deadline).not.toMatchObject({ why: "reconnect timeout" });
  });

  it("[Q29] that does not return loses the lease, also while its commands run, and they are drained", () => {
    const { harness, ann } = annIsCut();
    expect(harness.deadline).toEqual({ at: harness.now + 3 * second, why: "reconnect timeout" });
    const { fence } = harness.lease;
    harness.after(3 * second).tick();
    expect(harness.lease.state).toMatchObject({ name: "draining", reason: "disconnected" });
    expect(harness.lease.fence).toBe(fence + 1);
    expect(harness.renew(ann)).toBe("lease_lost disconnected");
    expect(harness.acquire("bob")).toBe("queued 0");
    harness.inFlight = { others: 0, own: 0 };
    harness.step({ type: "drained", fence: fence + 1 });
    expect(harness.acquire("bob")).toBe("granted");
  });

  it("[Q29] does not gain time by calls that it sent before, nor by another cut", () => {
    const { harness, ann } = annIsCut(1 * second);
    harness.after(0.5 * second).used(ann);
    harness.cut(ann, 3 * second);
    harness.after(0.5 * second).tick();
    expect(harness.state).toBe("draining");
  });

  it("[Q28] is not held longer than its grace by the end of its commands", () => {
    const { harness } = annIsCut();
    harness.inFlight = { others: 0, own: 0 };
    harness.after(3 * second - 1).tick();
    expect(harness.state).toBe("held");
    harness.after(1).tick();
    expect(harness.state).toBe("draining");
  });

  it("[Q28] a cut of a lease that has ended, or that a plan holds, changes nothing", () => {
    const { harness, ann } = heldByAnn();
    harness.step({ type: "pin", token: ann, until: harness.now });
    const pinned = harness.lease;
    harness.cut(ann);
    expect(harness.lease).toBe(pinned);
    harness.release(ann);
    const free = harness.lease;
    expect(harness.cut(ann)).toBe("done");
    expect(harness.lease).toBe(free);
  });
});
