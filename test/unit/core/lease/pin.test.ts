import { describe, expect, it } from "vitest";
import type { LossReason } from "../../../../src/core/lease/lease.ts";
import { limits } from "../../../../src/protocol/limits.ts";
import { Desk, minute, second } from "./harness.ts";

const day = 24 * 60 * minute;

/** Ann's, pinned; bob waits for it. */
function pinned(): { desk: Desk; ann: string } {
  const desk = new Desk();
  const ann = desk.held("ann");
  const until = desk.now + 30 * minute;
  expect(desk.step({ type: "pin", token: ann, until })).toBe("granted");
  desk.acquire("bob", { queueMs: 60 * minute });
  return { desk, ann };
}

describe("a pinned lease", () => {
  it("[PL53] does not end by time, needs no use, and asks for no look of its own", () => {
    const { desk, ann } = pinned();
    expect(desk.lease.state).toMatchObject({ expiresAt: desk.now + 30 * minute });
    expect(desk.deadline?.why).toBe("a waiter must ask again");
    desk.after(limits.leasePollMs).tick();
    expect(desk.deadline).toBeUndefined();
    desk.after(30 * day).tick();
    expect([desk.state, desk.gate(ann), desk.gate()]).toEqual(["held", "passes", "lease_held"]);
  });

  it("[PL53] one that was given to a waiting call may be pinned in time, and then need not be used", () => {
    const desk = new Desk();
    const ann = desk.held("ann");
    desk.acquire("bob");
    desk.release(ann);
    const bob = desk.held("bob");
    desk.after(limits.leaseUseMs - 1).step({ type: "pin", token: bob, until: desk.now });
    desk.after(day).tick();
    expect(desk.gate(bob)).toBe("passes");
    const late = new Desk();
    const cid = late.held("cid");
    late.after(30 * second);
    expect(late.step({ type: "pin", token: cid, until: late.now })).toBe("lease_lost expired");
  });

  it("[PL53] stays pinned when its holder uses it, renews it, or the object is a fresh one", () => {
    const { desk, ann } = pinned();
    desk.used(ann);
    desk.renew(ann, 5 * second);
    desk.step({ type: "instance" });
    desk.after(day).tick();
    expect(desk.gate(ann)).toBe("passes");
  });

  it("[PL53] ends by a release, or drained by whoever takes it, and the next is served", () => {
    const released = pinned();
    expect(released.desk.release(released.ann)).toBe("released");
    expect(released.desk.acquire("bob")).toBe("granted");
    for (const reason of ["forced", "broken"] satisfies LossReason[]) {
      const { desk, ann } = pinned();
      const { fence } = desk.lease;
      desk.step({ type: "take", reason });
      expect([desk.state, desk.gate(ann)]).toEqual(["draining", `lease_lost ${reason}`]);
      desk.step({ type: "drained", fence: fence + 1 });
      expect(desk.acquire("bob")).toBe("granted");
    }
  });
});
