import { describe, expect, it } from "vitest";
import { applyTimeouts } from "../../../../src/core/lease/step.ts";
import { limits } from "../../../../src/protocol/limits.ts";
import { heldByAnn, LeaseHarness, minute, second } from "./harness.ts";

/** Bob got the lease after waiting for it. */
function afterWaiting(): { harness: LeaseHarness; bob: string } {
  const { harness, ann } = heldByAnn();
  harness.acquire("bob");
  harness.release(ann);
  return { harness, bob: harness.held("bob") };
}

describe("a lost response", () => {
  it("[Q5] the ticket of the holder gives the same lease with the same token", () => {
    const { harness, ann } = heldByAnn();
    const { fence } = harness.grant;
    expect(harness.after(second).acquire("ann")).toBe("granted");
    expect(harness.grant).toMatchObject({ token: ann, fence });
  });

  it("[Q6] ticket and token of an ended lease get the reason of its end, for ten minutes", () => {
    const { harness, ann } = heldByAnn();
    harness.release(ann);
    harness.after(limits.leaseEndedMs - 1);
    expect(harness.acquire("ann")).toBe("lease_lost released");
    expect(harness.renew(ann)).toBe("lease_lost released");
    expect(harness.check(ann)).toBe("lease_lost released");
    harness.after(1);
    expect(harness.renew(ann)).toBe("lease_lost unknown");
    expect(harness.acquire("ann")).toBe("granted");
  });

  it("[Q6] ended leases are forgotten one by one, in order", () => {
    const harness = new LeaseHarness();
    harness.release(harness.held("ann"));
    harness.after(minute).release(harness.held("bob"));
    harness.after(limits.leaseEndedMs - minute);
    expect(harness.acquire("bob", { queueMs: 0 })).toBe("lease_lost released");
    expect(harness.lease.ended.map(({ ticket }) => ticket)).toEqual(["bob"]);
  });

  it("[Q6] the number of remembered leases is limited, and the oldest is forgotten first", () => {
    const harness = new LeaseHarness();
    for (let n = 0; n <= limits.leaseEndedMax; n += 1) harness.release(harness.held(`ticket ${n}`));
    expect(harness.lease.ended).toHaveLength(limits.leaseEndedMax);
    expect(harness.lease.ended[0]?.ticket).toBe("ticket 1");
  });

  it("[Q6] an unknown token is reported as such, in every state", () => {
    const harness = new LeaseHarness();
    expect(harness.renew("invented")).toBe("lease_lost unknown");
    expect(harness.used("invented")).toBe("lease_lost unknown");
    harness.held("ann");
    expect(harness.release("invented")).toBe("lease_lost unknown");
    expect(harness.check("invented")).toBe("lease_lost unknown");
  });
});

describe("a lease that was waited for", () => {
  it("[Q9] is released after ten seconds without use, and needs no drain", () => {
    const { harness, bob } = afterWaiting();
    harness.acquire("cid");
    const { fence } = harness.lease;
    harness.after(limits.leaseUseMs - 1).tick();
    expect(harness.state).toBe("held");
    harness.after(1).tick();
    expect(harness.state).toBe("offered");
    expect(harness.lease.fence).toBe(fence);
    expect(harness.renew(bob)).toBe("lease_lost unused");
  });

  it.each([
    ["a call with it", (harness: LeaseHarness, bob: string) => harness.used(bob)],
    ["a renewal", (harness: LeaseHarness, bob: string) => harness.renew(bob)],
    ["its ticket", (harness: LeaseHarness) => harness.acquire("bob")],
  ])("[Q9] stays after %s", (_, use) => {
    const { harness, bob } = afterWaiting();
    expect(use(harness.after(limits.leaseUseMs - 1), bob)).toBe("granted");
    harness.after(limits.leaseUseMs).tick();
    expect(harness.grant.token).toBe(bob);
  });

  it("[Q9] ends by its own short ttl before that", () => {
    const { harness, ann } = heldByAnn();
    harness.acquire("bob", { ttlMs: second });
    harness.release(ann);
    const bob = harness.held("bob");
    expect(harness.after(second).renew(bob)).toBe("lease_lost expired");
  });
});

describe("holding", () => {
  it("[Q10] a renewal extends the lease by a whole ttl, and keeps token and fence", () => {
    const { harness, ann } = heldByAnn({ ttlMs: 10 * second });
    const before = harness.grant;
    expect(harness.after(9 * second).renew(ann)).toBe("granted");
    expect(harness.leftMs).toBe(10 * second);
    expect(harness.grant).toEqual(before);
  });

  it("[Q10] a renewal may name another ttl, longer or shorter, which then stays", () => {
    const { harness, ann } = heldByAnn({ ttlMs: minute });
    expect(harness.renew(ann, 5 * second)).toBe("granted");
    expect(harness.leftMs).toBe(5 * second);
    expect(harness.after(4 * second).renew(ann)).toBe("granted");
    expect(harness.leftMs).toBe(5 * second);
  });

  it("[Q10] a lease that has ended cannot be renewed, neither by token nor by use", () => {
    const { harness, ann } = heldByAnn();
    harness.after(30 * second);
    expect(harness.renew(ann, minute)).toBe("lease_lost expired");
    expect(harness.used(ann)).toBe("lease_lost expired");
    expect(harness.state).toBe("draining");
  });

  it("[Q11] a running call of the holder keeps the lease alive beyond its end", () => {
    const { harness, ann } = heldByAnn({ ttlMs: second });
    harness.used(ann);
    harness.inFlight = { others: 0, own: 1 };
    expect(harness.deadline).toBeUndefined();
    harness.after(10 * minute).tick();
    expect(harness.grant.token).toBe(ann);
    expect(harness.check(ann)).toBe("passes");
  });

  it("[Q11] the end of that call extends the lease by a whole ttl", () => {
    const { harness, ann } = heldByAnn({ ttlMs: 5 * second });
    harness.inFlight = { others: 0, own: 1 };
    expect(harness.after(minute).used(ann)).toBe("granted");
    harness.inFlight = { others: 0, own: 0 };
    expect(harness.leftMs).toBe(5 * second);
    harness.after(5 * second - 1).tick();
    expect(harness.state).toBe("held");
  });

  it("[Q11] a call never shortens what is left, not even after a step of the clock backwards", () => {
    const { harness, ann } = heldByAnn({ ttlMs: 5 * second });
    harness.after(-second);
    expect(harness.used(ann)).toBe("granted");
    expect(harness.leftMs).toBe(6 * second);
  });

  it("[Q12] a lease ends at its time, not before, and exactly once", () => {
    const { harness, ann } = heldByAnn({ ttlMs: 5 * second });
    harness.after(5 * second - 1).tick();
    expect(harness.check(ann)).toBe("passes");
    harness.after(1).tick();
    const ended = harness.lease;
    expect(ended.state).toMatchObject({ name: "draining", reason: "expired", holder: "ann" });
    expect(ended.ended.map(({ reason }) => reason)).toEqual(["expired"]);
    harness.after(second).tick();
    expect(harness.lease).toEqual(ended);
  });

  it("[Q12] applying timeouts twice changes nothing", () => {
    const { harness } = heldByAnn();
    harness.acquire("bob");
    harness.after(31 * second).tick();
    expect(applyTimeouts(harness.lease, harness.now, harness.inFlight)).toBe(harness.lease);
  });
});
