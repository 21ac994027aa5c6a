import { describe, expect, it } from "vitest";
import type { LossReason } from "../../../../src/core/lease/lease.ts";
import { limits } from "../../../../src/protocol/limits.ts";
import { heldByAnn, LeaseHarness, second } from "./harness.ts";

/** Ann has lost the lease while Bob waits for it. */
function draining(reason: LossReason = "broken"): {
  harness: LeaseHarness;
  ann: string;
  fence: number;
} {
  const { harness, ann } = heldByAnn();
  harness.acquire("bob");
  expect(harness.step({ type: "take", reason })).toBe("done");
  expect(harness.state).toBe("draining");
  return { harness, ann, fence: harness.lease.fence };
}

describe("release", () => {
  it("[Q13] frees the lease at once and without a drain, and can be repeated", () => {
    const { harness, ann } = heldByAnn();
    expect(harness.release(ann)).toBe("released");
    expect(harness.state).toBe("free");
    expect(harness.release(ann)).toBe("released");
    expect(harness.after(limits.leaseEndedMs - 1).release(ann)).toBe("released");
  });

  it("[Q13] a repeated release does not affect the next holder", () => {
    const { harness, ann } = heldByAnn();
    harness.release(ann);
    const bob = harness.held("bob");
    expect(harness.release(ann)).toBe("released");
    expect(harness.release(ann, true)).toBe("released");
    expect(harness.grant.token).toBe(bob);
  });

  it("[Q13] a lost lease cannot be released any more, and the loser gets the reason", () => {
    const { harness, ann } = draining();
    expect(harness.release(ann)).toBe("lease_lost broken");
    expect(harness.release(ann, true)).toBe("lease_lost broken");
  });

  it("[Q14] is refused while calls of the lease run, and says how many", () => {
    const { harness, ann } = heldByAnn();
    harness.inFlight = { others: 0, own: 2 };
    expect(harness.release(ann)).toBe("lease_busy");
    expect(harness.refused?.facts).toEqual({ running: 2 });
    expect(harness.grant.token).toBe(ann);
  });

  it("[Q14] with force it drains what runs before anybody else gets the lease", () => {
    const { harness, ann } = heldByAnn();
    const { fence } = harness.lease;
    harness.acquire("bob");
    harness.inFlight = { others: 0, own: 1 };
    expect(harness.release(ann, true)).toBe("draining");
    expect(harness.lease.state).toMatchObject({ name: "draining", fence: fence + 1 });
    expect(harness.acquire("bob")).toBe("queued 0");
  });

  it("[Q13] with force it can be repeated, during the drain and afterwards", () => {
    const { harness, ann } = heldByAnn();
    harness.inFlight = { others: 0, own: 1 };
    expect(harness.release(ann, true)).toBe("draining");
    harness.inFlight = { others: 1, own: 0 };
    expect(harness.release(ann, true)).toBe("draining");
    expect(harness.release(ann)).toBe("draining");
    harness.step({ type: "drained", fence: harness.lease.fence });
    expect(harness.release(ann, true)).toBe("released");
    harness.inFlight = { others: 0, own: 0 };
    const bob = harness.held("bob");
    harness.step({ type: "take", reason: "broken" });
    expect(harness.release(ann, true)).toBe("released");
    expect(harness.release(bob, true)).toBe("lease_lost broken");
  });

  it("[Q14] with force and nothing running it simply releases", () => {
    const harness = new LeaseHarness();
    expect(harness.release(harness.held("ann"), true)).toBe("released");
    expect(harness.state).toBe("free");
  });
});

describe("a lease that is lost", () => {
  it.each<LossReason>(["broken", "forced", "disconnected"])(
    "[Q15] %s: the fence grows at once and the loser gets the reason",
    (reason) => {
      const { harness, ann, fence } = draining(reason);
      expect(harness.lease.state).toMatchObject({
        fence,
        reason,
        holder: "ann",
        since: harness.now,
      });
      expect(fence).toBeGreaterThan(1);
      expect(harness.check(ann)).toBe(`lease_lost ${reason}`);
      expect(harness.used(ann)).toBe(`lease_lost ${reason}`);
      expect(harness.acquire("ann")).toBe(`lease_lost ${reason}`);
    },
  );

  it("[Q15] a lease that nobody holds cannot be broken", () => {
    const harness = new LeaseHarness();
    expect(harness.step({ type: "take", reason: "broken" })).toBe("done");
    expect(harness.lease).toEqual(new LeaseHarness().lease);
    const { harness: other } = draining();
    const before = other.lease;
    other.step({ type: "take", reason: "forced" });
    expect(other.lease).toEqual(before);
  });

  it("[Q16] is granted to nobody until the agent has confirmed the drain", () => {
    const { harness, fence } = draining();
    harness.after(second);
    expect(harness.acquire("bob")).toBe("queued 0");
    expect(harness.acquire("cid", { queueMs: 0 })).toBe("lease_pending");
    expect(harness.check()).toBe("lease_pending");
    expect(harness.step({ type: "drained", fence })).toBe("done");
    expect(harness.state).toBe("offered");
    expect(harness.acquire("bob")).toBe("granted");
    expect(harness.grant.fence).toBe(fence + 1);
  });

  it("[Q16] a late confirmation of an earlier fence is ignored", () => {
    const { harness, fence } = draining();
    harness.step({ type: "drained", fence });
    harness.acquire("bob");
    harness.step({ type: "take", reason: "broken" });
    const before = harness.lease;
    harness.step({ type: "drained", fence });
    harness.step({ type: "drained", fence: fence + 1 });
    expect(harness.lease).toEqual(before);
    harness.step({ type: "drained", fence: fence + 2 });
    expect(harness.state).toBe("free");
  });

  it("[Q16] a confirmation of a higher fence counts, because the object has restarted in between", () => {
    const { harness, fence } = draining();
    harness.step({ type: "instance" });
    expect(harness.lease.state).toMatchObject({ name: "draining", fence });
    harness.step({ type: "drained", fence: fence + 1 });
    expect(harness.state).toBe("offered");
  });

  it("[Q16] an unexpected confirmation changes nothing", () => {
    const { harness, ann } = heldByAnn();
    harness.step({ type: "drained", fence: 99 });
    expect(harness.grant.token).toBe(ann);
  });

  it("[Q17] a drain without confirmation asks for the container's replacement after 30 s", () => {
    const { harness, fence } = draining();
    harness.after(limits.leaseDrainMs - 1).tick();
    expect(harness.lease.state).toMatchObject({ name: "draining", replace: false });
    harness.after(1).tick();
    const until = harness.now + limits.leaseDrainCheckMs;
    expect(harness.lease.state).toMatchObject({ name: "draining", replace: true, fence, until });
    harness.after(limits.leaseDrainCheckMs).tick();
    expect(harness.lease.state).toMatchObject({ until: until + limits.leaseDrainCheckMs });
    harness.step({ type: "drained", fence });
    expect(harness.state).toBe("free");
  });
});

describe("calls of others", () => {
  it("[Q18] the lease is granted once no gated call of others is in flight", () => {
    const harness = new LeaseHarness();
    harness.inFlight = { others: 2, own: 0 };
    expect(harness.acquire("ann", { queueMs: 0 })).toBe("lease_pending");
    expect(harness.refused?.facts).toEqual({ running: 2, waiting: 0 });
    expect(harness.acquire("ann")).toBe("queued 0");
    harness.inFlight = { others: 1, own: 0 };
    harness.tick();
    expect(harness.state).toBe("free");
    harness.inFlight = { others: 0, own: 0 };
    harness.tick();
    expect(harness.state).toBe("offered");
  });

  it("[Q18] while somebody waits, newcomers without a lease do not pass", () => {
    const harness = new LeaseHarness();
    expect(harness.check()).toBe("passes");
    harness.inFlight = { others: 1, own: 0 };
    harness.acquire("ann");
    expect(harness.check()).toBe("lease_pending");
    expect(harness.refused?.facts).toEqual({ waiting: 1, next: "ann" });
  });

  it("[Q18] calls of the loser in flight count as calls of others", () => {
    const { harness, fence } = draining();
    harness.inFlight = { others: 1, own: 0 };
    harness.step({ type: "drained", fence });
    expect(harness.state).toBe("free");
    expect(harness.acquire("bob")).toBe("queued 0");
  });
});

describe("the fence", () => {
  it("[Q19] grows with each grant, each loss, each restart of the object, and with the end of the sandbox", () => {
    const harness = new LeaseHarness();
    const seen = [harness.lease.fence];
    const recordFence = () => seen.push(harness.lease.fence);
    harness.held("ann");
    recordFence();
    harness.step({ type: "take", reason: "forced" });
    recordFence();
    harness.step({ type: "instance" });
    recordFence();
    harness.step({ type: "destroyed" });
    recordFence();
    expect(seen).toEqual([0, 1, 2, 3, 4]);
    expect(harness.held("bob")).toBeDefined();
    expect(harness.grant.fence).toBe(5);
  });

  it("[Q19] a restart of the object leaves the lease to its holder", () => {
    const { harness, ann } = heldByAnn();
    harness.step({ type: "instance" });
    expect(harness.lease.fence).toBe(2);
    expect(harness.check(ann)).toBe("passes");
    expect(harness.renew(ann)).toBe("granted");
  });

  it("[Q18] a restarted object offers nothing before it knows what runs", () => {
    const harness = new LeaseHarness();
    harness.inFlight = { others: 1, own: 0 };
    harness.acquire("ann");
    harness.inFlight = { others: 0, own: 0 };
    harness.step({ type: "instance" });
    expect(harness.state).toBe("free");
    harness.tick();
    expect(harness.state).toBe("offered");
  });

  it("[Q11] a restarted object ends nothing before it knows what runs", () => {
    const { harness, ann } = heldByAnn({ ttlMs: second });
    harness.after(2 * second).step({ type: "instance" });
    expect(harness.grant.token).toBe(ann);
    harness.inFlight = { others: 0, own: 1 };
    harness.tick();
    expect(harness.grant.token).toBe(ann);
    expect(harness.used(ann)).toBe("granted");
  });

  it("[Q22] the end of the sandbox ends the lease and the queue, and the holder gets the reason", () => {
    const { harness, ann } = heldByAnn();
    harness.acquire("bob");
    expect(harness.step({ type: "destroyed" })).toBe("done");
    expect(harness.lease).toMatchObject({ state: { name: "free" }, waiters: [] });
    expect(harness.check(ann)).toBe("lease_lost destroyed");
    expect(harness.deadline).toBeUndefined();
  });

  it("[Q22] the end of the sandbox ends a drain as well", () => {
    const { harness } = draining();
    harness.step({ type: "destroyed" });
    expect(harness.state).toBe("free");
    expect(harness.lease.ended.map(({ reason }) => reason)).toEqual(["broken"]);
  });
});
