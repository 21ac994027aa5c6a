import { describe, expect, it } from "vitest";
import { waitTimeoutError } from "../../../../src/core/lease/refusals.ts";
import { viewGrant, viewLease } from "../../../../src/core/lease/view.ts";
import { leaseSchema, leaseStateSchema } from "../../../../src/protocol/lease.ts";
import { limits } from "../../../../src/protocol/limits.ts";
import { Desk, second } from "./harness.ts";

describe("when a lease must be looked at again", () => {
  it("[Q20] a free lease that nobody waits for has no deadline", () => {
    expect(new Desk().deadline).toBeUndefined();
  });

  it("[Q20] each other state has the earliest of its limits, with the reason", () => {
    const desk = new Desk();
    const ann = desk.held("ann", { ttlMs: 20 * second });
    expect(desk.deadline).toEqual({ at: desk.now + 20 * second, why: "the lease expires" });

    desk.acquire("bob", { queueMs: 5 * second });
    expect(desk.deadline).toEqual({ at: desk.now + 5 * second, why: "a waiter must ask again" });
    desk.acquire("cid");
    desk.step({ type: "leave", ticket: "bob" });
    desk.release(ann);
    expect(desk.deadline).toEqual({
      at: desk.now + limits.leaseOfferMs,
      why: "the offered lease must be taken",
    });

    const cid = desk.held("cid");
    expect(desk.deadline).toEqual({
      at: desk.now + limits.leaseUseMs,
      why: "the lease must be used",
    });
    desk.used(cid);
    desk.busy = { others: 0, own: 1 };
    expect(desk.deadline).toBeUndefined();

    expect(desk.release(cid, true)).toBe("draining");
    expect(desk.deadline).toEqual({
      at: desk.now + limits.leaseDrainMs,
      why: "the drain must be confirmed",
    });
  });

  it("[Q20] the polling of the offered head is no deadline, that of the others is", () => {
    const desk = new Desk();
    const ann = desk.held("ann");
    desk.acquire("bob");
    desk.after(5 * second).acquire("cid");
    desk.after(20 * second).release(ann);
    desk.after(4 * second).acquire("cid");
    expect(desk.deadline?.at).toBe(desk.now + 6 * second);
    expect(desk.deadline?.why).toBe("the offered lease must be taken");
    desk.after(6 * second).tick();
    expect(desk.queue).toEqual(["cid"]);
  });
});

describe("what is told", () => {
  it("[Q21] a refusal names the holder, since when, until when and how many wait", () => {
    const desk = new Desk();
    desk.held("ann", { holder: "Ann" });
    desk.acquire("bob");
    expect(desk.gate()).toBe("lease_held");
    expect(desk.refused).toMatchObject({
      message: "Ann holds the lease.",
      facts: {
        holder: "Ann",
        acquiredAt: "2030-01-01T00:00:00.000Z",
        expiresAt: "2030-01-01T00:00:30.000Z",
        waiting: 1,
      },
    });
    expect(desk.refused?.hint).toBeTruthy();
  });

  it("[Q21] while it drains the refusal names the loser, and who is next", () => {
    const desk = new Desk();
    desk.held("ann");
    desk.acquire("bob");
    desk.step({ type: "take", reason: "broken" });
    expect(desk.acquire("cid", { queueMs: 0 })).toBe("lease_pending");
    expect(desk.refused?.message).toContain("ann was lost");
    expect(desk.refused?.facts).toEqual({ waiting: 1, holder: "ann", next: "bob" });
    desk.step({ type: "leave", ticket: "bob" });
    expect(desk.gate()).toBe("lease_pending");
    expect(desk.refused?.facts).toEqual({ waiting: 0, holder: "ann" });
  });

  it("[Q21] whoever runs out of patience is told who has the lease", () => {
    const desk = new Desk();
    desk.held("ann");
    expect(waitTimeoutError(desk.lease)).toMatchObject({
      code: "lease_wait_timeout",
      facts: { holder: "ann", waiting: 0 },
    });
  });

  it("[Q21] everybody sees state, holder and waiters, and nobody a token or a ticket", () => {
    const desk = new Desk();
    const seen = () => leaseStateSchema.parse(viewLease(desk.lease, desk.now));
    expect(seen()).toEqual({ state: "free", fence: 0, waiters: [], waiterCount: 0 });

    const token = desk.held("secret-of-ann", { holder: "Ann" });
    desk.acquire("secret-of-bob", { holder: "Bob" });
    desk.after(2 * second);
    expect(seen()).toEqual({
      state: "held",
      fence: 1,
      holder: "Ann",
      acquiredAt: "2030-01-01T00:00:00.000Z",
      expiresAt: "2030-01-01T00:00:30.000Z",
      waiters: [{ holder: "Bob", waitingMs: 2 * second }],
      waiterCount: 1,
    });
    desk.step({ type: "take", reason: "broken" });
    expect(seen()).toMatchObject({ state: "draining", holder: "Ann", reason: "broken", fence: 2 });
    const all = JSON.stringify(seen());
    expect(all).toContain("Bob");
    expect(all).not.toContain("secret-of");
    expect(all).not.toContain(token);
  });

  it("[Q21] of a long queue the first are shown and all are counted", () => {
    const desk = new Desk();
    desk.held("ann");
    for (let at = 0; at < 150; at += 1) desk.acquire(`ticket ${at}`);
    const { waiters, waiterCount } = viewLease(desk.lease, desk.now);
    expect(waiters.map(({ holder }) => holder)).toEqual(
      Array.from({ length: limits.leaseWaitersShownMax }, (_, at) => `ticket ${at}`),
    );
    expect(waiterCount).toBe(150);
  });

  it("[Q21] only the holder is told the token", () => {
    const desk = new Desk();
    expect(() => viewGrant(desk.lease)).toThrow("the lease is not held");
    const ann = desk.held("ann");
    expect(leaseSchema.parse(viewGrant(desk.lease))).toEqual({
      token: ann,
      fence: 1,
      holder: "ann",
      acquiredAt: "2030-01-01T00:00:00.000Z",
      expiresAt: "2030-01-01T00:00:30.000Z",
    });
  });
});
