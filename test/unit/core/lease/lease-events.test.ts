import { describe, expect, it } from "vitest";
import { waitTimeoutError } from "../../../../src/core/lease/refusals.ts";
import { viewGrant, viewLease } from "../../../../src/core/lease/view.ts";
import { leaseSchema, leaseStateSchema } from "../../../../src/protocol/lease.ts";
import { limits } from "../../../../src/protocol/limits.ts";
import { heldByAnn, LeaseHarness, second } from "./harness.ts";

describe("the deadline of a lease", () => {
  it("[Q20] a free lease that nobody waits for has no deadline", () => {
    expect(new LeaseHarness().deadline).toBeUndefined();
  });

  it("[Q20] every other state has the earliest of its limits, with the reason", () => {
    const { harness, ann } = heldByAnn({ ttlMs: 20 * second });
    expect(harness.deadline).toEqual({ at: harness.now + 20 * second, why: "lease expiry" });

    harness.acquire("bob", { queueMs: 5 * second });
    expect(harness.deadline).toEqual({
      at: harness.now + 5 * second,
      why: "waiter timeout",
    });
    harness.acquire("cid");
    harness.step({ type: "leave", ticket: "bob" });
    harness.release(ann);
    expect(harness.deadline).toEqual({
      at: harness.now + limits.leaseOfferMs,
      why: "offer timeout",
    });

    const cid = harness.held("cid");
    expect(harness.deadline).toEqual({
      at: harness.now + limits.leaseUseMs,
      why: "first-use timeout",
    });
    harness.used(cid);
    harness.inFlight = { others: 0, own: 1 };
    expect(harness.deadline).toBeUndefined();

    expect(harness.release(cid, true)).toBe("draining");
    expect(harness.deadline).toEqual({
      at: harness.now + limits.leaseDrainMs,
      why: "drain timeout",
    });
  });

  it("[Q20] polling of the first waiter is no deadline during its offer, polling of the others is", () => {
    const { harness, ann } = heldByAnn();
    harness.acquire("bob");
    harness.after(5 * second).acquire("cid");
    harness.after(20 * second).release(ann);
    harness.after(4 * second).acquire("cid");
    expect(harness.deadline?.at).toBe(harness.now + 6 * second);
    expect(harness.deadline?.why).toBe("offer timeout");
    harness.after(6 * second).tick();
    expect(harness.queue).toEqual(["cid"]);
  });
});

describe("errors and views of a lease", () => {
  it("[Q21] a refusal names the holder, since when, until when and how many wait", () => {
    const { harness } = heldByAnn({ holder: "Ann" });
    harness.acquire("bob");
    expect(harness.check()).toBe("lease_held");
    expect(harness.refused).toMatchObject({
      message: "Ann holds the lease.",
      facts: {
        holder: "Ann",
        acquiredAt: "2030-01-01T00:00:00.000Z",
        expiresAt: "2030-01-01T00:00:30.000Z",
        waiting: 1,
      },
    });
    expect(harness.refused?.hint).toBeTruthy();
  });

  it("[Q21] during a drain the refusal names the loser and the next waiter", () => {
    const { harness } = heldByAnn();
    harness.acquire("bob");
    harness.step({ type: "take", reason: "broken" });
    expect(harness.acquire("cid", { queueMs: 0 })).toBe("lease_pending");
    expect(harness.refused?.message).toContain("ann was lost");
    expect(harness.refused?.facts).toEqual({ waiting: 1, holder: "ann", next: "bob" });
    harness.step({ type: "leave", ticket: "bob" });
    expect(harness.check()).toBe("lease_pending");
    expect(harness.refused?.facts).toEqual({ waiting: 0, holder: "ann" });
  });

  it("[Q21] a waiter that times out learns who has the lease", () => {
    const { harness } = heldByAnn();
    expect(waitTimeoutError(harness.lease)).toMatchObject({
      code: "lease_wait_timeout",
      facts: { holder: "ann", waiting: 0 },
    });
  });

  it("[Q21] everybody sees state, holder and waiters, but no token and no ticket", () => {
    const harness = new LeaseHarness();
    const seen = () => leaseStateSchema.parse(viewLease(harness.lease, harness.now));
    expect(seen()).toEqual({ state: "free", fence: 0, waiters: [], waiterCount: 0 });

    const token = harness.held("secret-of-ann", { holder: "Ann" });
    harness.acquire("secret-of-bob", { holder: "Bob" });
    harness.after(2 * second);
    expect(seen()).toEqual({
      state: "held",
      fence: 1,
      holder: "Ann",
      acquiredAt: "2030-01-01T00:00:00.000Z",
      expiresAt: "2030-01-01T00:00:30.000Z",
      waiters: [{ holder: "Bob", waitingMs: 2 * second }],
      waiterCount: 1,
    });
    harness.step({ type: "take", reason: "broken" });
    expect(seen()).toMatchObject({ state: "draining", holder: "Ann", reason: "broken", fence: 2 });
    const all = JSON.stringify(seen());
    expect(all).toContain("Bob");
    expect(all).not.toContain("secret-of");
    expect(all).not.toContain(token);
  });

  it("[Q21] a long queue shows its first waiters and the count of all", () => {
    const { harness } = heldByAnn();
    for (let n = 0; n < 150; n += 1) harness.acquire(`ticket ${n}`);
    const { waiters, waiterCount } = viewLease(harness.lease, harness.now);
    expect(waiters.map(({ holder }) => holder)).toEqual(
      Array.from({ length: limits.leaseWaitersShownMax }, (_, n) => `ticket ${n}`),
    );
    expect(waiterCount).toBe(150);
  });

  it("[Q21] only the holder gets the token", () => {
    const harness = new LeaseHarness();
    expect(() => viewGrant(harness.lease)).toThrow("the lease is not held");
    const ann = harness.held("ann");
    expect(leaseSchema.parse(viewGrant(harness.lease))).toEqual({
      token: ann,
      fence: 1,
      holder: "ann",
      acquiredAt: "2030-01-01T00:00:00.000Z",
      expiresAt: "2030-01-01T00:00:30.000Z",
    });
  });
});
