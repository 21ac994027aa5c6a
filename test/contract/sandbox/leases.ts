/**
 * The contract of the lease: who gets it, in which order, how it is kept and released. See lease-end.ts for its end.
 */
import { describe, expect, it } from "vitest";
import type { SandboxApi } from "../../../src/protocol/api.ts";
import { limits } from "../../../src/protocol/limits.ts";
import {
  acquireLease,
  createSandbox,
  eventsOfType,
  eventually,
  expectRefusal,
  expectRefusals,
  itWith,
  queued,
  refusal,
  type World,
} from "./world.ts";

const ticketOf = (name: string) => `ticket-of-${name}`.padEnd(24, "_");

export function leaseContract(world: World): void {
  const itCounting = itWith(world, "ran");
  const itEvicting = itWith(world, "evict");
  const itByTheClock = itWith(world, "clock", "ring");
  const running = (id: string, count = 1) =>
    eventually(async () => expect((await world.inside(id)).running).toBe(count));
  const waiting = (box: SandboxApi, count: number) =>
    eventually(async () => expect((await box.lease()).waiterCount).toBe(count));

  describe("a lease", () => {
    it("[Q1] [Q21] is granted when free; others learn who has it, and never a secret", async () => {
      const { box } = await createSandbox(world);
      const lease = acquireLease(await box.acquireLease({ holder: "agent 7", ttlMs: 60_000 }));
      const ticket = ticketOf("second");
      queued(await box.acquireLease({ holder: "second", queueMs: 60_000, ticket }));
      const seen = { holder: "agent 7", acquiredAt: lease.acquiredAt, expiresAt: lease.expiresAt };
      const calls = [box.acquireLease(), box.exec({ command: "true" }), box.pause()];
      await expectRefusals(calls, "lease_held", { ...seen, waiting: 1 });
      const shown = [await box.lease(), await box.get(), await box.events()];
      expect(shown[0]).toMatchObject({ state: "held", ...seen, waiterCount: 1 });
      expect(shown[1]).toMatchObject({ lease: { holder: "agent 7" } });
      expect(await eventsOfType(box, "lease")).toMatchObject([
        { what: "granted", holder: "agent 7", fence: lease.fence },
      ]);
      const text = JSON.stringify(shown);
      expect(text).not.toContain(lease.token);
      expect(text).not.toContain(ticket);
      expect((await box.exec({ command: "true" }, { lease: lease.token })).exitCode).toBe(0);
    });

    it("[Q2] [Q3] goes to ten waiters in order of arrival", async () => {
      const { box } = await createSandbox(world);
      let { token } = acquireLease(await box.acquireLease({ holder: "first" }));
      const calls = [];
      for (let n = 0; n < 10; n++) {
        calls.push(box.acquireLease({ holder: `waiter ${n}`, waitMs: 20_000 }));
        await waiting(box, n + 1);
      }
      expect((await box.lease()).waiters.map(({ holder }) => holder)).toEqual(
        calls.map((_call, n) => `waiter ${n}`),
      );
      let fence = 0;
      for (const [n, call] of calls.entries()) {
        expect(await box.releaseLease(token)).toEqual({ state: "released" });
        const next = acquireLease(await call);
        expect(next.holder).toBe(`waiter ${n}`);
        expect(next.fence).toBeGreaterThan(fence);
        await expectRefusal(box.acquireLease(), "lease_held");
        ({ token, fence } = next);
      }
      await box.releaseLease(token);
      const grants = (await eventsOfType(box, "lease")).filter(({ what }) => what === "granted");
      expect(grants.map(({ holder }) => holder)).toEqual([
        "first",
        ...calls.map((_call, n) => `waiter ${n}`),
      ]);
    });

    it("[Q8] lets a call hang no longer than its `waitMs`", async () => {
      const { box } = await createSandbox(world);
      const { token } = acquireLease(await box.acquireLease({ holder: "one" }));
      await expectRefusal(box.acquireLease({ waitMs: 100 }), "lease_wait_timeout", {
        holder: "one",
      });
      await expectRefusal(box.exec({ command: "true" }, { waitMs: 100 }), "lease_wait_timeout");
      expect((await box.lease()).waiterCount).toBe(0);
      expect(await box.releaseLease(token)).toEqual({ state: "released" });
    });

    itEvicting(
      "[Q5] [Q11] gives a repeated ticket the same place, then the same lease",
      async () => {
        const { id, box } = await createSandbox(world);
        const first = acquireLease(
          await box.acquireLease({ holder: "one", ticket: ticketOf("one") }),
        );
        expect(
          acquireLease(await box.acquireLease({ holder: "one", ticket: ticketOf("one") })),
        ).toEqual({
          ...first,
          expiresAt: expect.any(String),
        });
        const asks = (name: string) =>
          box.acquireLease({ holder: name, queueMs: 60_000, ticket: ticketOf(name) });
        expect(queued(await asks("two")).position).toBe(0);
        expect(queued(await asks("three"))).toEqual({
          ticket: ticketOf("three"),
          position: 1,
          pollWithinMs: limits.leasePollMs,
        });
        await world.evict(id);
        expect(queued(await asks("three")).position).toBe(1);
        expect((await box.lease()).waiterCount).toBe(2);

        await box.releaseLease(first.token);
        expect((await box.lease()).state).toBe("offered");
        expect(queued(await asks("three")).position).toBe(1);
        const second = acquireLease(await asks("two"));
        expect(acquireLease(await asks("two")).token).toBe(second.token);
        expect(second.fence).toBeGreaterThan(first.fence);
      },
    );

    it("[Q6] reports to the ticket and the token of an ended lease how it ended", async () => {
      const { box } = await createSandbox(world);
      const ticket = ticketOf("one");
      const { token } = acquireLease(await box.acquireLease({ holder: "one", ticket }));
      await box.releaseLease(token);
      const lost = { code: "lease_lost", facts: { reason: "released" } };
      expect(await refusal(box.acquireLease({ holder: "one", ticket }))).toMatchObject(lost);
      expect(await refusal(box.exec({ command: "true" }, { lease: token }))).toMatchObject(lost);
      expect(await refusal(box.renewLease(token))).toMatchObject(lost);
    });

    itByTheClock(
      "[Q7] offers a turn for ten seconds; unclaimed, it passes to the next",
      async () => {
        const { id, box } = await createSandbox(world);
        const { token } = acquireLease(await box.acquireLease({ holder: "one" }));
        const asks = (name: string) =>
          box.acquireLease({ holder: name, queueMs: 600_000, ticket: ticketOf(name) });
        queued(await asks("two"));
        queued(await asks("three"));
        const now = Date.now();
        world.clock(now);
        await box.releaseLease(token);
        world.clock(now + limits.leaseOfferMs - 1);
        await world.ring(id);
        expect((await box.lease()).waiterCount).toBe(2);
        world.clock(now + limits.leaseOfferMs);
        expect(await world.ring(id)).toBe(true);
        expect(await box.lease()).toMatchObject({ state: "offered", waiterCount: 1 });
        expect(acquireLease(await asks("three")).holder).toBe("three");
      },
    );

    itByTheClock("[Q8] drops a waiter that does not poll for thirty seconds", async () => {
      const { id, box } = await createSandbox(world);
      const { token } = acquireLease(await box.acquireLease({ holder: "one", ttlMs: 300_000 }));
      const asks = (name: string) =>
        box.acquireLease({ holder: name, queueMs: 600_000, ticket: ticketOf(name) });
      const now = Date.now();
      world.clock(now);
      queued(await asks("two"));
      queued(await asks("three"));
      world.clock(now + 20_000);
      queued(await asks("three"));
      world.clock(now + limits.leasePollMs);
      expect(await world.ring(id)).toBe(true);
      expect((await box.lease()).waiters.map(({ holder }) => holder)).toEqual(["three"]);
      await box.releaseLease(token);
      expect(acquireLease(await asks("three")).holder).toBe("three");
    });

    itByTheClock("[Q9] releases a lease that a waiter was granted and never used", async () => {
      const { id, box } = await createSandbox(world);
      const { token } = acquireLease(await box.acquireLease({ holder: "one" }));
      const waits = box.acquireLease({ holder: "two", waitMs: 20_000 });
      await waiting(box, 1);
      const now = Date.now();
      world.clock(now);
      await box.releaseLease(token);
      const given = acquireLease(await waits);
      world.clock(now + limits.leaseUseMs);
      expect(await world.ring(id)).toBe(true);
      expect((await box.lease()).state).toBe("free");
      await expectRefusal(box.renewLease(given.token), "lease_lost", { reason: "unused" });
    });

    itWith(world, "clock")(
      "[Q10] is renewed for another full `ttlMs`, or for a new one",
      async () => {
        const { box } = await createSandbox(world);
        const now = Date.now();
        world.clock(now);
        const { token, fence } = acquireLease(await box.acquireLease({ ttlMs: 10_000 }));
        world.clock(now + 9_000);
        const renewed = await box.renewLease(token);
        expect(renewed).toMatchObject({ token, fence });
        expect(Date.parse(renewed.expiresAt)).toBe(now + 19_000);
        expect(Date.parse((await box.renewLease(token, { ttlMs: 60_000 })).expiresAt)).toBe(
          now + 69_000,
        );
      },
    );

    it("[Q13] is released at once; releasing it again does not affect the next holder", async () => {
      const { box } = await createSandbox(world);
      const first = acquireLease(await box.acquireLease({ holder: "one" }));
      expect(await box.releaseLease(first.token)).toEqual({ state: "released" });
      const second = acquireLease(await box.acquireLease({ holder: "two" }));
      expect(await box.releaseLease(first.token)).toEqual({ state: "released" });
      expect(await box.lease()).toMatchObject({ state: "held", holder: "two" });
      await expectRefusal(box.releaseLease("neverOne".repeat(4)), "lease_lost");
      expect((await box.releaseLease(second.token)).state).toBe("released");
    });

    itCounting(
      "[Q18] is granted once no call of others is in flight; newcomers do not pass",
      async () => {
        const { id, box } = await createSandbox(world);
        const slept = box.exec({ command: "sleep 3" });
        await running(id);
        await expectRefusal(box.acquireLease(), "lease_pending", { running: 1, waiting: 0 });
        const waits = box.acquireLease({ holder: "patient", waitMs: 20_000 });
        await waiting(box, 1);
        await expectRefusal(box.exec({ command: "true" }), "lease_pending", {
          waiting: 1,
          next: "patient",
        });
        expect((await box.lease()).state).toBe("free");
        const lease = acquireLease(await waits);
        expect((await world.inside(id)).running).toBe(0);
        expect((await slept).exitCode).toBe(0);
        expect((await world.inside(id)).ran).toEqual(["sleep 3"]);
        await box.releaseLease(lease.token);
      },
    );

    itCounting(
      "[Y4] runs a call with a wait limit alone and in its turn, and is released after it",
      async () => {
        const { id, box } = await createSandbox(world);
        const { token } = acquireLease(await box.acquireLease({ holder: "one" }));
        const began = Date.now();
        const calls = Array.from({ length: 5 }, () =>
          box.exec({ command: "sleep 0.05" }, { waitMs: 20_000 }),
        );
        await waiting(box, 5);
        expect((await world.inside(id)).ran).toEqual([]);
        await box.releaseLease(token);
        for (const answer of await Promise.all(calls)) expect(answer.exitCode).toBe(0);
        // One after the other: concurrently they would have taken as long as one.
        expect(Date.now() - began).toBeGreaterThanOrEqual(5 * 50 - 5);
        expect(await box.lease()).toMatchObject({ state: "free", waiterCount: 0 });
        const grants = (await eventsOfType(box, "lease")).filter(({ what }) => what === "granted");
        expect(grants).toHaveLength(6);
      },
    );

    itByTheClock(
      "[Q11] lasts as long as a call of its holder runs, and a full `ttlMs` after it",
      async () => {
        const { id, box } = await createSandbox(world);
        const lease = acquireLease(await box.acquireLease({ ttlMs: 10_000 }));
        const slept = box.exec({ command: "sleep 3" }, { lease: lease.token });
        await running(id);
        const late = Date.parse(lease.expiresAt) + 60_000;
        world.clock(late);
        await world.ring(id);
        expect((await box.lease()).state).toBe("held");
        expect((await slept).exitCode).toBe(0);
        expect(Date.parse((await box.lease()).expiresAt ?? "")).toBe(late + 10_000);
      },
    );

    it("[Y16] of one sandbox delays no other", async () => {
      const [one, two] = [await createSandbox(world), await createSandbox(world)];
      acquireLease(await one.box.acquireLease());
      expect((await two.box.exec({ command: "echo free" })).stdout).toBe("free\n");
      acquireLease(await two.box.acquireLease());
    });
  });
}
