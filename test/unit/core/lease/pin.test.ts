import { describe, expect, it } from "vitest";
import type { LossReason } from "../../../../src/core/lease/lease.ts";
import { limits } from "../../../../src/protocol/limits.ts";
import { heldByAnn, LeaseHarness, minute, second } from "./harness.ts";

const day = 24 * 60 * minute;

/** Ann has pinned the lease, and Bob waits for it. */
function pinned(): { harness: LeaseHarness; ann: string } {
  const { harness, ann } = heldByAnn();
  const until = harness.now + 30 * minute;
  expect(harness.step({ type: "pin", token: ann, until })).toBe("granted");
  harness.acquire("bob", { queueMs: 60 * minute });
  return { harness, ann };
}

describe("a pinned lease", () => {
  it("[PL53] does not end by time, needs no use, and has no deadline", () => {
    const { harness, ann } = pinned();
    expect(harness.lease.state).toMatchObject({ expiresAt: harness.now + 30 * minute });
    expect(harness.deadline?.why).toBe("waiter timeout");
    harness.after(limits.leasePollMs).tick();
    expect(harness.deadline).toBeUndefined();
    harness.after(30 * day).tick();
    expect([harness.state, harness.check(ann), harness.check()]).toEqual([
      "held",
      "passes",
      "lease_held",
    ]);
  });

  it("[PL53] a lease that was granted to a waiter can be pinned in time and need not be used then", () => {
    const { harness, ann } = heldByAnn();
    harness.acquire("bob");
    harness.release(ann);
    const bob = harness.held("bob");
    harness.after(limits.leaseUseMs - 1).step({ type: "pin", token: bob, until: harness.now });
    harness.after(day).tick();
    expect(harness.check(bob)).toBe("passes");
    const late = new LeaseHarness();
    const cid = late.held("cid");
    late.after(30 * second);
    expect(late.step({ type: "pin", token: cid, until: late.now })).toBe("lease_lost expired");
  });

  it("[PL53] stays pinned when its holder uses or renews it, and when the object restarts", () => {
    const { harness, ann } = pinned();
    harness.used(ann);
    harness.renew(ann, 5 * second);
    harness.step({ type: "instance" });
    harness.after(day).tick();
    expect(harness.check(ann)).toBe("passes");
  });

  it("[PL53] ends by a release or by a break with a drain, and the next waiter is served", () => {
    const released = pinned();
    expect(released.harness.release(released.ann)).toBe("released");
    expect(released.harness.acquire("bob")).toBe("granted");
    for (const reason of ["forced", "broken"] satisfies LossReason[]) {
      const { harness, ann } = pinned();
      const { fence } = harness.lease;
      harness.step({ type: "take", reason });
      expect([harness.state, harness.check(ann)]).toEqual(["draining", `lease_lost ${reason}`]);
      harness.step({ type: "drained", fence: fence + 1 });
      expect(harness.acquire("bob")).toBe("granted");
    }
  });
});
