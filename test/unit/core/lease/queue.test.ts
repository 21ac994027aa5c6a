import { describe, expect, it } from "vitest";
import { limits } from "../../../../src/protocol/limits.ts";
import { Desk, minute, second } from "./harness.ts";

/** Ann holds the lease, the others wait in this order. */
function behindAnn(...names: string[]): { desk: Desk; ann: string } {
  const desk = new Desk();
  const ann = desk.held("ann");
  names.forEach((name, at) => {
    expect(desk.acquire(name)).toBe(`queued ${at}`);
  });
  return { desk, ann };
}

describe("who gets the lease", () => {
  it("[Q1] a free lease that nobody waits for is granted at once", () => {
    const desk = new Desk();
    expect(desk.acquire("ann", { holder: "Ann", ttlMs: 5 * second, queueMs: 0 })).toBe("granted");
    expect(desk.grant).toMatchObject({ holder: "Ann", ttlMs: 5 * second, acquiredAt: desk.now });
    expect(desk.leftMs).toBe(5 * second);
    expect(desk.lease.state).not.toHaveProperty("useBy");
  });

  it("[Q1] a second caller without patience is refused at once, and leaves no trace", () => {
    const { desk } = behindAnn();
    const before = desk.lease;
    expect(desk.acquire("bob", { queueMs: 0 })).toBe("lease_held");
    expect(desk.lease).toEqual(before);
  });

  it("[Q2] a newcomer does not overtake, not even when the lease looks free", () => {
    const desk = new Desk();
    desk.busy = { others: 1, own: 0 };
    expect(desk.acquire("ann")).toBe("queued 0");
    expect(desk.state).toBe("free");
    desk.busy = { others: 0, own: 0 };
    expect(desk.acquire("bob", { queueMs: 0 })).toBe("lease_pending");
    expect(desk.acquire("bob")).toBe("queued 1");
    expect(desk.acquire("ann")).toBe("granted");
  });

  it("[Q2] nobody but the head of the queue can take an offered turn", () => {
    const { desk, ann } = behindAnn("bob", "cid");
    expect(desk.release(ann)).toBe("released");
    expect(desk.state).toBe("offered");
    expect(desk.acquire("cid")).toBe("queued 1");
    expect(desk.acquire("dan", { queueMs: 0 })).toBe("lease_pending");
    expect(desk.acquire("dan")).toBe("queued 2");
    expect(desk.acquire("bob")).toBe("granted");
  });

  it("[Q3] waiters are served in the order in which they came", () => {
    const { desk, ann } = behindAnn("bob", "cid", "dan");
    let token = ann;
    for (const name of ["bob", "cid", "dan"]) {
      expect(desk.release(token)).toBe("released");
      token = desk.held(name);
      expect(desk.grant.ticket).toBe(name);
    }
    expect(desk.queue).toEqual([]);
  });

  it("[Q3] whoever leaves gives its place to those behind it", () => {
    const { desk, ann } = behindAnn("bob", "cid", "dan");
    expect(desk.step({ type: "leave", ticket: "bob" })).toBe("done");
    expect(desk.step({ type: "leave", ticket: "nobody" })).toBe("done");
    expect(desk.queue).toEqual(["cid", "dan"]);
    desk.release(ann);
    expect(desk.acquire("cid")).toBe("granted");
  });

  it("[Q3] the turn of one who leaves is offered to the next, for a whole ten seconds", () => {
    const { desk, ann } = behindAnn("bob", "cid");
    desk.release(ann);
    desk.after(9 * second).step({ type: "leave", ticket: "bob" });
    expect(desk.lease.state).toEqual({ name: "offered", until: desk.now + limits.leaseOfferMs });
    expect(desk.after(9 * second).acquire("cid")).toBe("granted");
  });

  it("[Q3] one who leaves from behind the head changes nothing of the head's turn", () => {
    const { desk, ann } = behindAnn("bob", "cid");
    desk.release(ann);
    const turn = desk.lease.state;
    desk.after(second).step({ type: "leave", ticket: "cid" });
    expect(desk.lease.state).toEqual(turn);
  });

  it("[Q4] the seventeenth waiter of one holder is refused, naming the limit", () => {
    const { desk } = behindAnn();
    for (let at = 0; at < limits.leaseWaitersOfHolderMax; at += 1) {
      expect(desk.acquire(`bob ${at}`, { holder: "bob" })).toBe(`queued ${at}`);
    }
    expect(desk.acquire("bob 16", { holder: "bob" })).toBe("queue_full");
    expect(desk.refused?.facts).toEqual({ waitersOfHolderMax: 16 });
    expect(desk.acquire("bob 3", { holder: "bob" })).toBe("queued 3");
    expect(desk.acquire("cid")).toBe("queued 16");
  });

  it("[Q4] the thousand-and-first waiter is refused, naming the limit", () => {
    const { desk } = behindAnn();
    for (let at = 0; at < limits.leaseWaitersMax; at += 1) {
      desk.acquire(`ticket ${at}`, { holder: `holder ${at % 500}` });
    }
    expect(desk.queue).toHaveLength(1_000);
    expect(desk.acquire("one more")).toBe("queue_full");
    expect(desk.refused?.facts).toEqual({ waitersMax: 1_000 });
    desk.step({ type: "leave", ticket: "ticket 500" });
    expect(desk.acquire("one more")).toBe("queued 999");
  });
});

describe("waiting", () => {
  it("[Q5] a repeated ticket keeps its place and is not a second waiter", () => {
    const { desk } = behindAnn("bob", "cid");
    expect(desk.after(second).acquire("bob")).toBe("queued 0");
    expect(desk.acquire("cid")).toBe("queued 1");
    expect(desk.queue).toEqual(["bob", "cid"]);
  });

  it("[Q5] what a waiter wished for at first is what it gets", () => {
    const desk = new Desk();
    const ann = desk.held("ann");
    desk.acquire("bob", { holder: "Bob", ttlMs: 7 * second });
    desk.release(ann);
    expect(desk.acquire("bob", { holder: "Else", ttlMs: minute })).toBe("granted");
    expect(desk.grant).toMatchObject({ holder: "Bob", ttlMs: 7 * second });
  });

  it("[Q7] a turn is offered for ten seconds and then passes on", () => {
    const { desk, ann } = behindAnn("bob", "cid");
    desk.release(ann);
    desk.after(limits.leaseOfferMs - 1).tick();
    expect(desk.queue).toEqual(["bob", "cid"]);
    desk.after(1).tick();
    expect(desk.queue).toEqual(["cid"]);
    expect(desk.lease.state).toEqual({ name: "offered", until: desk.now + limits.leaseOfferMs });
  });

  it("[Q7] whoever let its turn pass comes again as the last", () => {
    const { desk, ann } = behindAnn("bob", "cid");
    desk.release(ann);
    expect(desk.after(limits.leaseOfferMs).acquire("bob")).toBe("queued 1");
    expect(desk.acquire("cid")).toBe("granted");
  });

  it("[Q7] while its turn is offered only that limit counts for the head", () => {
    const desk = new Desk();
    const ann = desk.held("ann");
    desk.acquire("bob", { queueMs: 29 * second });
    desk.after(28 * second);
    desk.release(ann);
    expect(desk.state).toBe("offered");
    expect(desk.after(9 * second).acquire("bob")).toBe("granted");
  });

  it("[Q8] a waiter who does not ask for thirty seconds leaves the queue", () => {
    const { desk, ann } = behindAnn("bob", "cid");
    desk.after(20 * second);
    expect(desk.renew(ann)).toBe("granted");
    expect(desk.acquire("cid")).toBe("queued 1");
    desk.after(limits.leasePollMs - 20 * second - 1).tick();
    expect(desk.queue).toEqual(["bob", "cid"]);
    desk.after(1).tick();
    expect(desk.queue).toEqual(["cid"]);
  });

  it("[Q8] a waiter whose patience is over leaves the queue, however often it asks", () => {
    const { desk } = behindAnn();
    desk.busy = { others: 0, own: 1 };
    expect(desk.acquire("bob", { queueMs: 40 * second })).toBe("queued 0");
    desk.after(25 * second);
    expect(desk.acquire("bob", { queueMs: 40 * second })).toBe("queued 0");
    desk.after(15 * second - 1).tick();
    expect(desk.queue).toEqual(["bob"]);
    desk.after(1).tick();
    expect(desk.queue).toEqual([]);
  });
});
