import { describe, expect, it } from "vitest";
import { applyTimeouts } from "../../../../src/core/lease/step.ts";
import { limits } from "../../../../src/protocol/limits.ts";
import { Desk, minute, second } from "./harness.ts";

/** Bob was given the lease after waiting for it. */
function afterWaiting(): { desk: Desk; bob: string } {
  const desk = new Desk();
  const ann = desk.held("ann");
  desk.acquire("bob");
  desk.release(ann);
  return { desk, bob: desk.held("bob") };
}

describe("a lost answer", () => {
  it("[Q5] the ticket of the holder gives the same lease with the same token", () => {
    const desk = new Desk();
    const ann = desk.held("ann");
    const { fence } = desk.grant;
    expect(desk.after(second).acquire("ann")).toBe("granted");
    expect(desk.grant).toMatchObject({ token: ann, fence });
  });

  it("[Q6] ticket and token of an ended lease are told how it ended, for ten minutes", () => {
    const desk = new Desk();
    const ann = desk.held("ann");
    desk.release(ann);
    desk.after(limits.leaseEndedMs - 1);
    expect(desk.acquire("ann")).toBe("lease_lost released");
    expect(desk.renew(ann)).toBe("lease_lost released");
    expect(desk.gate(ann)).toBe("lease_lost released");
    desk.after(1);
    expect(desk.renew(ann)).toBe("lease_lost unknown");
    expect(desk.acquire("ann")).toBe("granted");
  });

  it("[Q6] what is remembered of ended leases is forgotten one by one, in order", () => {
    const desk = new Desk();
    desk.release(desk.held("ann"));
    desk.after(minute).release(desk.held("bob"));
    desk.after(limits.leaseEndedMs - minute);
    expect(desk.acquire("bob", { queueMs: 0 })).toBe("lease_lost released");
    expect(desk.lease.ended.map(({ ticket }) => ticket)).toEqual(["bob"]);
  });

  it("[Q6] what is remembered has a bound; the oldest goes first", () => {
    const desk = new Desk();
    for (let at = 0; at <= limits.leaseEndedMax; at += 1) desk.release(desk.held(`ticket ${at}`));
    expect(desk.lease.ended).toHaveLength(limits.leaseEndedMax);
    expect(desk.lease.ended[0]?.ticket).toBe("ticket 1");
  });

  it("[Q6] a token that never was is told so, in every state", () => {
    const desk = new Desk();
    expect(desk.renew("invented")).toBe("lease_lost unknown");
    expect(desk.used("invented")).toBe("lease_lost unknown");
    desk.held("ann");
    expect(desk.release("invented")).toBe("lease_lost unknown");
    expect(desk.gate("invented")).toBe("lease_lost unknown");
  });
});

describe("a lease that was waited for", () => {
  it("[Q9] is let go after ten seconds without use, and needs no drain", () => {
    const { desk, bob } = afterWaiting();
    desk.acquire("cid");
    const { fence } = desk.lease;
    desk.after(limits.leaseUseMs - 1).tick();
    expect(desk.state).toBe("held");
    desk.after(1).tick();
    expect(desk.state).toBe("offered");
    expect(desk.lease.fence).toBe(fence);
    expect(desk.renew(bob)).toBe("lease_lost unused");
  });

  it.each([
    ["a call with it", (desk: Desk, bob: string) => desk.used(bob)],
    ["a renewal", (desk: Desk, bob: string) => desk.renew(bob)],
    ["its ticket", (desk: Desk) => desk.acquire("bob")],
  ])("[Q9] stays after %s", (_, use) => {
    const { desk, bob } = afterWaiting();
    expect(use(desk.after(limits.leaseUseMs - 1), bob)).toBe("granted");
    desk.after(limits.leaseUseMs).tick();
    expect(desk.grant.token).toBe(bob);
  });

  it("[Q9] ends by its own short ttl before that", () => {
    const desk = new Desk();
    const ann = desk.held("ann");
    desk.acquire("bob", { ttlMs: second });
    desk.release(ann);
    const bob = desk.held("bob");
    expect(desk.after(second).renew(bob)).toBe("lease_lost expired");
  });
});

describe("holding", () => {
  it("[Q10] a renewal gives a whole ttl from now, and keeps token and fence", () => {
    const desk = new Desk();
    const ann = desk.held("ann", { ttlMs: 10 * second });
    const before = desk.grant;
    expect(desk.after(9 * second).renew(ann)).toBe("granted");
    expect(desk.leftMs).toBe(10 * second);
    expect(desk.grant).toEqual(before);
  });

  it("[Q10] a renewal may name another ttl, longer or shorter, which then stays", () => {
    const desk = new Desk();
    const ann = desk.held("ann", { ttlMs: minute });
    expect(desk.renew(ann, 5 * second)).toBe("granted");
    expect(desk.leftMs).toBe(5 * second);
    expect(desk.after(4 * second).renew(ann)).toBe("granted");
    expect(desk.leftMs).toBe(5 * second);
  });

  it("[Q10] a lease that has ended cannot be renewed, neither by token nor by use", () => {
    const desk = new Desk();
    const ann = desk.held("ann");
    desk.after(30 * second);
    expect(desk.renew(ann, minute)).toBe("lease_lost expired");
    expect(desk.used(ann)).toBe("lease_lost expired");
    expect(desk.state).toBe("draining");
  });

  it("[Q11] a running call of the holder keeps the lease alive beyond its end", () => {
    const desk = new Desk();
    const ann = desk.held("ann", { ttlMs: second });
    desk.used(ann);
    desk.busy = { others: 0, own: 1 };
    expect(desk.deadline).toBeUndefined();
    desk.after(10 * minute).tick();
    expect(desk.grant.token).toBe(ann);
    expect(desk.gate(ann)).toBe("passes");
  });

  it("[Q11] the end of that call gives another whole ttl", () => {
    const desk = new Desk();
    const ann = desk.held("ann", { ttlMs: 5 * second });
    desk.busy = { others: 0, own: 1 };
    expect(desk.after(minute).used(ann)).toBe("granted");
    desk.busy = { others: 0, own: 0 };
    expect(desk.leftMs).toBe(5 * second);
    desk.after(5 * second - 1).tick();
    expect(desk.state).toBe("held");
  });

  it("[Q11] a call never shortens what is left, not even after a step of the clock backwards", () => {
    const desk = new Desk();
    const ann = desk.held("ann", { ttlMs: 5 * second });
    desk.after(-second);
    expect(desk.used(ann)).toBe("granted");
    expect(desk.leftMs).toBe(6 * second);
  });

  it("[Q12] a lease ends at its time, not before, and exactly once", () => {
    const desk = new Desk();
    const ann = desk.held("ann", { ttlMs: 5 * second });
    desk.after(5 * second - 1).tick();
    expect(desk.gate(ann)).toBe("passes");
    desk.after(1).tick();
    const ended = desk.lease;
    expect(ended.state).toMatchObject({ name: "draining", reason: "expired", holder: "ann" });
    expect(ended.ended.map(({ reason }) => reason)).toEqual(["expired"]);
    desk.after(second).tick();
    expect(desk.lease).toEqual(ended);
  });

  it("[Q12] settling what is settled changes nothing", () => {
    const desk = new Desk();
    desk.held("ann");
    desk.acquire("bob");
    desk.after(31 * second).tick();
    expect(applyTimeouts(desk.lease, desk.now, desk.busy)).toBe(desk.lease);
  });
});
