import { describe, expect, it } from "vitest";
import type { LossReason } from "../../../../src/core/lease/lease.ts";
import { limits } from "../../../../src/protocol/limits.ts";
import { Desk, second } from "./harness.ts";

/** Ann lost the lease while Bob waits for it. */
function draining(reason: LossReason = "broken"): { desk: Desk; ann: string; fence: number } {
  const desk = new Desk();
  const ann = desk.held("ann");
  desk.acquire("bob");
  expect(desk.step({ type: "take", reason })).toBe("done");
  expect(desk.state).toBe("draining");
  return { desk, ann, fence: desk.lease.fence };
}

describe("release", () => {
  it("[Q13] frees the lease at once and without a drain, and can be repeated", () => {
    const desk = new Desk();
    const ann = desk.held("ann");
    expect(desk.release(ann)).toBe("released");
    expect(desk.state).toBe("free");
    expect(desk.release(ann)).toBe("released");
    expect(desk.after(limits.leaseEndedMs - 1).release(ann)).toBe("released");
  });

  it("[Q13] a repeated release does not touch the lease of who came next", () => {
    const desk = new Desk();
    const ann = desk.held("ann");
    desk.release(ann);
    const bob = desk.held("bob");
    expect(desk.release(ann)).toBe("released");
    expect(desk.release(ann, true)).toBe("released");
    expect(desk.grant.token).toBe(bob);
  });

  it("[Q13] a lease that was lost cannot be released any more: the loser is told", () => {
    const { desk, ann } = draining();
    expect(desk.release(ann)).toBe("lease_lost broken");
    expect(desk.release(ann, true)).toBe("lease_lost broken");
  });

  it("[Q14] is refused while a call of its own runs, and says how many", () => {
    const desk = new Desk();
    const ann = desk.held("ann");
    desk.busy = { others: 0, own: 2 };
    expect(desk.release(ann)).toBe("lease_busy");
    expect(desk.refused?.facts).toEqual({ running: 2 });
    expect(desk.grant.token).toBe(ann);
  });

  it("[Q14] by force it drains what runs, before anyone else has a turn", () => {
    const desk = new Desk();
    const ann = desk.held("ann");
    const { fence } = desk.lease;
    desk.acquire("bob");
    desk.busy = { others: 0, own: 1 };
    expect(desk.release(ann, true)).toBe("draining");
    expect(desk.lease.state).toMatchObject({ name: "draining", fence: fence + 1 });
    expect(desk.acquire("bob")).toBe("queued 0");
  });

  it("[Q13] by force it can be repeated too, while it drains and afterwards", () => {
    const desk = new Desk();
    const ann = desk.held("ann");
    desk.busy = { others: 0, own: 1 };
    expect(desk.release(ann, true)).toBe("draining");
    desk.busy = { others: 1, own: 0 };
    expect(desk.release(ann, true)).toBe("draining");
    expect(desk.release(ann)).toBe("draining");
    desk.step({ type: "drained", fence: desk.lease.fence });
    expect(desk.release(ann, true)).toBe("released");
    desk.busy = { others: 0, own: 0 };
    const bob = desk.held("bob");
    desk.step({ type: "take", reason: "broken" });
    expect(desk.release(ann, true)).toBe("released");
    expect(desk.release(bob, true)).toBe("lease_lost broken");
  });

  it("[Q14] by force with nothing running it simply releases", () => {
    const desk = new Desk();
    expect(desk.release(desk.held("ann"), true)).toBe("released");
    expect(desk.state).toBe("free");
  });
});

describe("a lease that is lost", () => {
  it.each<LossReason>(["broken", "forced", "disconnected"])(
    "[Q15] %s: the fence grows at once and the loser is told why",
    (reason) => {
      const { desk, ann, fence } = draining(reason);
      expect(desk.lease.state).toMatchObject({ fence, reason, holder: "ann", since: desk.now });
      expect(fence).toBeGreaterThan(1);
      expect(desk.gate(ann)).toBe(`lease_lost ${reason}`);
      expect(desk.used(ann)).toBe(`lease_lost ${reason}`);
      expect(desk.acquire("ann")).toBe(`lease_lost ${reason}`);
    },
  );

  it("[Q15] what nobody holds cannot be taken away", () => {
    const desk = new Desk();
    expect(desk.step({ type: "take", reason: "broken" })).toBe("done");
    expect(desk.lease).toEqual(new Desk().lease);
    const { desk: other } = draining();
    const before = other.lease;
    other.step({ type: "take", reason: "forced" });
    expect(other.lease).toEqual(before);
  });

  it("[Q16] goes to nobody until the agent has confirmed that nothing is left", () => {
    const { desk, fence } = draining();
    desk.after(second);
    expect(desk.acquire("bob")).toBe("queued 0");
    expect(desk.acquire("cid", { queueMs: 0 })).toBe("lease_pending");
    expect(desk.gate()).toBe("lease_pending");
    expect(desk.step({ type: "drained", fence })).toBe("done");
    expect(desk.state).toBe("offered");
    expect(desk.acquire("bob")).toBe("granted");
    expect(desk.grant.fence).toBe(fence + 1);
  });

  it("[Q16] a late confirmation of an earlier fence is ignored", () => {
    const { desk, fence } = draining();
    desk.step({ type: "drained", fence });
    desk.acquire("bob");
    desk.step({ type: "take", reason: "broken" });
    const before = desk.lease;
    desk.step({ type: "drained", fence });
    desk.step({ type: "drained", fence: fence + 1 });
    expect(desk.lease).toEqual(before);
    desk.step({ type: "drained", fence: fence + 2 });
    expect(desk.state).toBe("free");
  });

  it("[Q16] a confirmation of a higher fence counts: the instance has changed meanwhile", () => {
    const { desk, fence } = draining();
    desk.step({ type: "instance" });
    expect(desk.lease.state).toMatchObject({ name: "draining", fence });
    desk.step({ type: "drained", fence: fence + 1 });
    expect(desk.state).toBe("offered");
  });

  it("[Q16] a confirmation that nobody asked for changes nothing", () => {
    const desk = new Desk();
    const ann = desk.held("ann");
    desk.step({ type: "drained", fence: 99 });
    expect(desk.grant.token).toBe(ann);
  });

  it("[Q17] a drain without confirmation asks for the container's replacement after 30 s", () => {
    const { desk, fence } = draining();
    desk.after(limits.leaseDrainMs - 1).tick();
    expect(desk.lease.state).toMatchObject({ name: "draining", replace: false });
    desk.after(1).tick();
    const until = desk.now + limits.leaseDrainLookMs;
    expect(desk.lease.state).toMatchObject({ name: "draining", replace: true, fence, until });
    desk.after(limits.leaseDrainLookMs).tick();
    expect(desk.lease.state).toMatchObject({ until: until + limits.leaseDrainLookMs });
    desk.step({ type: "drained", fence });
    expect(desk.state).toBe("free");
  });
});

describe("calls of others", () => {
  it("[Q18] the lease is granted once no gated call of others is in flight", () => {
    const desk = new Desk();
    desk.busy = { others: 2, own: 0 };
    expect(desk.acquire("ann", { queueMs: 0 })).toBe("lease_pending");
    expect(desk.refused?.facts).toEqual({ running: 2, waiting: 0 });
    expect(desk.acquire("ann")).toBe("queued 0");
    desk.busy = { others: 1, own: 0 };
    desk.tick();
    expect(desk.state).toBe("free");
    desk.busy = { others: 0, own: 0 };
    desk.tick();
    expect(desk.state).toBe("offered");
  });

  it("[Q18] while somebody waits, newcomers without a lease do not pass", () => {
    const desk = new Desk();
    expect(desk.gate()).toBe("passes");
    desk.busy = { others: 1, own: 0 };
    desk.acquire("ann");
    expect(desk.gate()).toBe("lease_pending");
    expect(desk.refused?.facts).toEqual({ waiting: 1, next: "ann" });
  });

  it("[Q18] what the loser still has in flight counts as a call of others", () => {
    const { desk, fence } = draining();
    desk.busy = { others: 1, own: 0 };
    desk.step({ type: "drained", fence });
    expect(desk.state).toBe("free");
    expect(desk.acquire("bob")).toBe("queued 0");
  });
});

describe("the fence", () => {
  it("[Q19] grows with each grant, each loss, each instance and over the end of the sandbox", () => {
    const desk = new Desk();
    const seen = [desk.lease.fence];
    const look = () => seen.push(desk.lease.fence);
    desk.held("ann");
    look();
    desk.step({ type: "take", reason: "forced" });
    look();
    desk.step({ type: "instance" });
    look();
    desk.step({ type: "destroyed" });
    look();
    expect(seen).toEqual([0, 1, 2, 3, 4]);
    expect(desk.held("bob")).toBeDefined();
    expect(desk.grant.fence).toBe(5);
  });

  it("[Q19] a fresh instance of the object leaves the holder its lease", () => {
    const desk = new Desk();
    const ann = desk.held("ann");
    desk.step({ type: "instance" });
    expect(desk.lease.fence).toBe(2);
    expect(desk.gate(ann)).toBe("passes");
    expect(desk.renew(ann)).toBe("granted");
  });

  it("[Q18] a fresh instance offers nothing before it knows what runs", () => {
    const desk = new Desk();
    desk.busy = { others: 1, own: 0 };
    desk.acquire("ann");
    desk.busy = { others: 0, own: 0 };
    desk.step({ type: "instance" });
    expect(desk.state).toBe("free");
    desk.tick();
    expect(desk.state).toBe("offered");
  });

  it("[Q11] a fresh instance ends nothing before it knows what runs", () => {
    const desk = new Desk();
    const ann = desk.held("ann", { ttlMs: second });
    desk.after(2 * second).step({ type: "instance" });
    expect(desk.grant.token).toBe(ann);
    desk.busy = { others: 0, own: 1 };
    desk.tick();
    expect(desk.grant.token).toBe(ann);
    expect(desk.used(ann)).toBe("granted");
  });

  it("[Q22] the end of the sandbox ends the lease and the queue, and tells the holder", () => {
    const desk = new Desk();
    const ann = desk.held("ann");
    desk.acquire("bob");
    expect(desk.step({ type: "destroyed" })).toBe("done");
    expect(desk.lease).toMatchObject({ state: { name: "free" }, waiters: [] });
    expect(desk.gate(ann)).toBe("lease_lost destroyed");
    expect(desk.deadline).toBeUndefined();
  });

  it("[Q22] the end of the sandbox ends a drain as well", () => {
    const { desk } = draining();
    desk.step({ type: "destroyed" });
    expect(desk.state).toBe("free");
    expect(desk.lease.ended.map(({ reason }) => reason)).toEqual(["broken"]);
  });
});
