import { describe, expect, it } from "vitest";
import { limits } from "../../../../src/protocol/limits.ts";
import { heldByAnn, LeaseHarness, minute, second } from "./harness.ts";

/** Ann holds the lease, and the others wait in this order. */
function behindAnn(...names: string[]): { harness: LeaseHarness; ann: string } {
  const { harness, ann } = heldByAnn();
  names.forEach((name, n) => {
    expect(harness.acquire(name)).toBe(`queued ${n}`);
  });
  return { harness, ann };
}

describe("who gets the lease", () => {
  it("[Q1] a free lease that nobody waits for is granted at once", () => {
    const harness = new LeaseHarness();
    expect(harness.acquire("ann", { holder: "Ann", ttlMs: 5 * second, queueMs: 0 })).toBe(
      "granted",
    );
    expect(harness.grant).toMatchObject({
      holder: "Ann",
      ttlMs: 5 * second,
      acquiredAt: harness.now,
    });
    expect(harness.leftMs).toBe(5 * second);
    expect(harness.lease.state).not.toHaveProperty("useBy");
  });

  it("[Q1] a second caller that does not wait is refused at once and leaves no trace", () => {
    const { harness } = behindAnn();
    const before = harness.lease;
    expect(harness.acquire("bob", { queueMs: 0 })).toBe("lease_held");
    expect(harness.lease).toEqual(before);
  });

  it("[Q2] a newcomer never overtakes, even when the lease looks free", () => {
    const harness = new LeaseHarness();
    harness.inFlight = { others: 1, own: 0 };
    expect(harness.acquire("ann")).toBe("queued 0");
    expect(harness.state).toBe("free");
    harness.inFlight = { others: 0, own: 0 };
    expect(harness.acquire("bob", { queueMs: 0 })).toBe("lease_pending");
    expect(harness.acquire("bob")).toBe("queued 1");
    expect(harness.acquire("ann")).toBe("granted");
  });

  it("[Q2] only the first waiter can take the offered lease", () => {
    const { harness, ann } = behindAnn("bob", "cid");
    expect(harness.release(ann)).toBe("released");
    expect(harness.state).toBe("offered");
    expect(harness.acquire("cid")).toBe("queued 1");
    expect(harness.acquire("dan", { queueMs: 0 })).toBe("lease_pending");
    expect(harness.acquire("dan")).toBe("queued 2");
    expect(harness.acquire("bob")).toBe("granted");
  });

  it("[Q3] waiters are served in the order in which they came", () => {
    const { harness, ann } = behindAnn("bob", "cid", "dan");
    let token = ann;
    for (const name of ["bob", "cid", "dan"]) {
      expect(harness.release(token)).toBe("released");
      token = harness.held(name);
      expect(harness.grant.ticket).toBe(name);
    }
    expect(harness.queue).toEqual([]);
  });

  it("[Q3] a waiter that leaves gives its place to those behind it", () => {
    const { harness, ann } = behindAnn("bob", "cid", "dan");
    expect(harness.step({ type: "leave", ticket: "bob" })).toBe("done");
    expect(harness.step({ type: "leave", ticket: "nobody" })).toBe("done");
    expect(harness.queue).toEqual(["cid", "dan"]);
    harness.release(ann);
    expect(harness.acquire("cid")).toBe("granted");
  });

  it("[Q3] the offer to a waiter that leaves passes to the next, for a whole ten seconds", () => {
    const { harness, ann } = behindAnn("bob", "cid");
    harness.release(ann);
    harness.after(9 * second).step({ type: "leave", ticket: "bob" });
    expect(harness.lease.state).toEqual({
      name: "offered",
      until: harness.now + limits.leaseOfferMs,
    });
    expect(harness.after(9 * second).acquire("cid")).toBe("granted");
  });

  it("[Q3] a later waiter that leaves does not affect the offer to the first", () => {
    const { harness, ann } = behindAnn("bob", "cid");
    harness.release(ann);
    const turn = harness.lease.state;
    harness.after(second).step({ type: "leave", ticket: "cid" });
    expect(harness.lease.state).toEqual(turn);
  });

  it("[Q4] the seventeenth waiter of one holder is refused, naming the limit", () => {
    const { harness } = behindAnn();
    for (let n = 0; n < limits.leaseWaitersOfHolderMax; n += 1) {
      expect(harness.acquire(`bob ${n}`, { holder: "bob" })).toBe(`queued ${n}`);
    }
    expect(harness.acquire("bob 16", { holder: "bob" })).toBe("queue_full");
    expect(harness.refused?.facts).toEqual({ waitersOfHolderMax: 16 });
    expect(harness.acquire("bob 3", { holder: "bob" })).toBe("queued 3");
    expect(harness.acquire("cid")).toBe("queued 16");
  });

  it("[Q4] the thousand-and-first waiter is refused, naming the limit", () => {
    const { harness } = behindAnn();
    for (let n = 0; n < limits.leaseWaitersMax; n += 1) {
      harness.acquire(`ticket ${n}`, { holder: `holder ${n % 500}` });
    }
    expect(harness.queue).toHaveLength(1_000);
    expect(harness.acquire("one more")).toBe("queue_full");
    expect(harness.refused?.facts).toEqual({ waitersMax: 1_000 });
    harness.step({ type: "leave", ticket: "ticket 500" });
    expect(harness.acquire("one more")).toBe("queued 999");
  });
});

describe("waiting", () => {
  it("[Q5] a repeated ticket keeps its place and is not a second waiter", () => {
    const { harness } = behindAnn("bob", "cid");
    expect(harness.after(second).acquire("bob")).toBe("queued 0");
    expect(harness.acquire("cid")).toBe("queued 1");
    expect(harness.queue).toEqual(["bob", "cid"]);
  });

  it("[Q5] a waiter gets the lease with the options of its first call", () => {
    const { harness, ann } = heldByAnn();
    harness.acquire("bob", { holder: "Bob", ttlMs: 7 * second });
    harness.release(ann);
    expect(harness.acquire("bob", { holder: "Else", ttlMs: minute })).toBe("granted");
    expect(harness.grant).toMatchObject({ holder: "Bob", ttlMs: 7 * second });
  });

  it("[Q7] an offer lasts ten seconds and then passes on", () => {
    const { harness, ann } = behindAnn("bob", "cid");
    harness.release(ann);
    harness.after(limits.leaseOfferMs - 1).tick();
    expect(harness.queue).toEqual(["bob", "cid"]);
    harness.after(1).tick();
    expect(harness.queue).toEqual(["cid"]);
    expect(harness.lease.state).toEqual({
      name: "offered",
      until: harness.now + limits.leaseOfferMs,
    });
  });

  it("[Q7] a waiter that missed its offer rejoins as the last", () => {
    const { harness, ann } = behindAnn("bob", "cid");
    harness.release(ann);
    expect(harness.after(limits.leaseOfferMs).acquire("bob")).toBe("queued 1");
    expect(harness.acquire("cid")).toBe("granted");
  });

  it("[Q7] during its offer only that limit applies to the first waiter", () => {
    const { harness, ann } = heldByAnn();
    harness.acquire("bob", { queueMs: 29 * second });
    harness.after(28 * second);
    harness.release(ann);
    expect(harness.state).toBe("offered");
    expect(harness.after(9 * second).acquire("bob")).toBe("granted");
  });

  it("[Q8] a waiter that does not poll for thirty seconds leaves the queue", () => {
    const { harness, ann } = behindAnn("bob", "cid");
    harness.after(20 * second);
    expect(harness.renew(ann)).toBe("granted");
    expect(harness.acquire("cid")).toBe("queued 1");
    harness.after(limits.leasePollMs - 20 * second - 1).tick();
    expect(harness.queue).toEqual(["bob", "cid"]);
    harness.after(1).tick();
    expect(harness.queue).toEqual(["cid"]);
  });

  it("[Q8] a waiter leaves the queue after its `queueMs`, however often it polls", () => {
    const { harness } = behindAnn();
    harness.inFlight = { others: 0, own: 1 };
    expect(harness.acquire("bob", { queueMs: 40 * second })).toBe("queued 0");
    harness.after(25 * second);
    expect(harness.acquire("bob", { queueMs: 40 * second })).toBe("queued 0");
    harness.after(15 * second - 1).tick();
    expect(harness.queue).toEqual(["bob"]);
    harness.after(1).tick();
    expect(harness.queue).toEqual([]);
  });
});
