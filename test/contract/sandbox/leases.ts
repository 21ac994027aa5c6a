/**
 * Owns what callers are promised of the lease: who gets it, in which order, how it is kept and given back.
 * Does not own its end by others (lease-end.ts).
 */
import { describe, expect, it } from "vitest";
import type { SandboxApi } from "../../../src/protocol/api.ts";
import { limits } from "../../../src/protocol/limits.ts";
import {
  granted,
  made,
  queued,
  refusal,
  refusals,
  saying,
  soon,
  told,
  type World,
} from "./world.ts";

const ticketOf = (name: string) => `ticket-of-${name}`.padEnd(24, "_");

export function leaseContract(world: World): void {
  const running = (id: string, count = 1) =>
    soon(async () => expect((await world.inside(id)).running).toBe(count));
  const waiting = (box: SandboxApi, count: number) =>
    soon(async () => expect((await box.lease()).waiterCount).toBe(count));

  describe("a lease", () => {
    it("[Q1] [Q21] is granted when free; others are told who has it, and never a secret", async () => {
      const { box } = await made(world);
      const lease = granted(await box.acquireLease({ holder: "agent 7", ttlMs: 60_000 }));
      const ticket = ticketOf("second");
      queued(await box.acquireLease({ holder: "second", queueMs: 60_000, ticket }));
      const seen = { holder: "agent 7", acquiredAt: lease.acquiredAt, expiresAt: lease.expiresAt };
      const calls = [box.acquireLease(), box.exec({ command: "true" }), box.pause()];
      for (const refused of await refusals(calls)) {
        expect(refused).toMatchObject({
          code: "lease_held",
          facts: { ...seen, waiting: 1 },
        });
      }
      const shown = [await box.lease(), await box.get(), await box.events()];
      expect(shown[0]).toMatchObject({ state: "held", ...seen, waiterCount: 1 });
      expect(shown[1]).toMatchObject({ lease: { holder: "agent 7" } });
      expect(await told(box, "lease")).toMatchObject([
        { what: "granted", holder: "agent 7", fence: lease.fence },
      ]);
      const text = JSON.stringify(shown);
      expect(text).not.toContain(lease.token);
      expect(text).not.toContain(ticket);
      expect((await box.exec({ command: "true" }, { lease: lease.token })).exitCode).toBe(0);
    });

    it("[Q2] [Q3] goes to ten who wait in the order in which they came", async () => {
      const { box } = await made(world);
      let { token } = granted(await box.acquireLease({ holder: "first" }));
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
        const next = granted(await call);
        expect(next.holder).toBe(`waiter ${n}`);
        expect(next.fence).toBeGreaterThan(fence);
        expect((await refusal(box.acquireLease())).code).toBe("lease_held");
        ({ token, fence } = next);
      }
      await box.releaseLease(token);
      const grants = (await told(box, "lease")).filter(({ what }) => what === "granted");
      expect(grants.map(({ holder }) => holder)).toEqual([
        "first",
        ...calls.map((_call, n) => `waiter ${n}`),
      ]);
    });

    it("[Q8] lets a call hang no longer than its patience", async () => {
      const { box } = await made(world);
      const { token } = granted(await box.acquireLease({ holder: "one" }));
      expect(await refusal(box.acquireLease({ waitMs: 100 }))).toMatchObject({
        code: "lease_wait_timeout",
        facts: { holder: "one" },
      });
      expect(await refusal(box.exec({ command: "true" }, { waitMs: 100 }))).toMatchObject({
        code: "lease_wait_timeout",
      });
      expect((await box.lease()).waiterCount).toBe(0);
      expect(await box.releaseLease(token)).toEqual({ state: "released" });
    });

    saying(world, "evict")(
      "[Q5] [Q11] gives a repeated ticket the same place, then the same lease",
      async () => {
        const { id, box } = await made(world);
        const first = granted(await box.acquireLease({ holder: "one", ticket: ticketOf("one") }));
        expect(granted(await box.acquireLease({ holder: "one", ticket: ticketOf("one") }))).toEqual(
          {
            ...first,
            expiresAt: expect.any(String),
          },
        );
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
        const second = granted(await asks("two"));
        expect(granted(await asks("two")).token).toBe(second.token);
        expect(second.fence).toBeGreaterThan(first.fence);
      },
    );

    it("[Q6] tells a ticket and a token of an ended lease how it ended", async () => {
      const { box } = await made(world);
      const ticket = ticketOf("one");
      const { token } = granted(await box.acquireLease({ holder: "one", ticket }));
      await box.releaseLease(token);
      const lost = { code: "lease_lost", facts: { reason: "released" } };
      expect(await refusal(box.acquireLease({ holder: "one", ticket }))).toMatchObject(lost);
      expect(await refusal(box.exec({ command: "true" }, { lease: token }))).toMatchObject(lost);
      expect(await refusal(box.renewLease(token))).toMatchObject(lost);
    });

    saying(
      world,
      "clock",
      "ring",
    )("[Q7] offers a turn for ten seconds; unclaimed it passes on", async () => {
      const { id, box } = await made(world);
      const { token } = granted(await box.acquireLease({ holder: "one" }));
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
      expect(granted(await asks("three")).holder).toBe("three");
    });

    saying(
      world,
      "clock",
      "ring",
    )("[Q8] forgets a waiter who does not ask for thirty seconds", async () => {
      const { id, box } = await made(world);
      const { token } = granted(await box.acquireLease({ holder: "one", ttlMs: 300_000 }));
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
      expect(granted(await asks("three")).holder).toBe("three");
    });

    saying(
      world,
      "clock",
      "ring",
    )("[Q9] lets a lease go that was given to a waiter and never used", async () => {
      const { id, box } = await made(world);
      const { token } = granted(await box.acquireLease({ holder: "one" }));
      const waits = box.acquireLease({ holder: "two", waitMs: 20_000 });
      await waiting(box, 1);
      const now = Date.now();
      world.clock(now);
      await box.releaseLease(token);
      const given = granted(await waits);
      world.clock(now + limits.leaseUseMs);
      expect(await world.ring(id)).toBe(true);
      expect((await box.lease()).state).toBe("free");
      expect(await refusal(box.renewLease(given.token))).toMatchObject({
        code: "lease_lost",
        facts: { reason: "unused" },
      });
    });

    saying(world, "clock")(
      "[Q10] is renewed for another whole ttl, or for one that is told",
      async () => {
        const { box } = await made(world);
        const now = Date.now();
        world.clock(now);
        const { token, fence } = granted(await box.acquireLease({ ttlMs: 10_000 }));
        world.clock(now + 9_000);
        const renewed = await box.renewLease(token);
        expect(renewed).toMatchObject({ token, fence });
        expect(Date.parse(renewed.expiresAt)).toBe(now + 19_000);
        expect(Date.parse((await box.renewLease(token, { ttlMs: 60_000 })).expiresAt)).toBe(
          now + 69_000,
        );
      },
    );

    it("[Q13] is released at once, and again without harm to whoever has it then", async () => {
      const { box } = await made(world);
      const first = granted(await box.acquireLease({ holder: "one" }));
      expect(await box.releaseLease(first.token)).toEqual({ state: "released" });
      const second = granted(await box.acquireLease({ holder: "two" }));
      expect(await box.releaseLease(first.token)).toEqual({ state: "released" });
      expect(await box.lease()).toMatchObject({ state: "held", holder: "two" });
      expect(await refusal(box.releaseLease("neverOne".repeat(4)))).toMatchObject({
        code: "lease_lost",
      });
      expect((await box.releaseLease(second.token)).state).toBe("released");
    });

    saying(world, "ran")(
      "[Q18] is granted once no call of others is in flight; newcomers do not pass",
      async () => {
        const { id, box } = await made(world);
        const slept = box.exec({ command: "sleep 3" });
        await running(id);
        expect(await refusal(box.acquireLease())).toMatchObject({
          code: "lease_pending",
          facts: { running: 1, waiting: 0 },
        });
        const waits = box.acquireLease({ holder: "patient", waitMs: 20_000 });
        await waiting(box, 1);
        expect(await refusal(box.exec({ command: "true" }))).toMatchObject({
          code: "lease_pending",
          facts: { waiting: 1, next: "patient" },
        });
        expect((await box.lease()).state).toBe("free");
        const lease = granted(await waits);
        expect((await world.inside(id)).running).toBe(0);
        expect((await slept).exitCode).toBe(0);
        expect((await world.inside(id)).ran).toEqual(["sleep 3"]);
        await box.releaseLease(lease.token);
      },
    );

    saying(world, "ran")(
      "[Y4] runs a call that says how long it may wait alone, in its turn, and lets go",
      async () => {
        const { id, box } = await made(world);
        const { token } = granted(await box.acquireLease({ holder: "one" }));
        const began = Date.now();
        const calls = Array.from({ length: 5 }, () =>
          box.exec({ command: "sleep 0.05" }, { waitMs: 20_000 }),
        );
        await waiting(box, 5);
        expect((await world.inside(id)).ran).toEqual([]);
        await box.releaseLease(token);
        for (const answer of await Promise.all(calls)) expect(answer.exitCode).toBe(0);
        // One after the other: together they would have taken as long as one.
        expect(Date.now() - began).toBeGreaterThanOrEqual(5 * 50 - 5);
        expect(await box.lease()).toMatchObject({ state: "free", waiterCount: 0 });
        const grants = (await told(box, "lease")).filter(({ what }) => what === "granted");
        expect(grants).toHaveLength(6);
      },
    );

    saying(
      world,
      "clock",
      "ring",
    )("[Q11] lives as long as a call of its holder runs, and a whole ttl after it", async () => {
      const { id, box } = await made(world);
      const lease = granted(await box.acquireLease({ ttlMs: 10_000 }));
      const slept = box.exec({ command: "sleep 3" }, { lease: lease.token });
      await running(id);
      const late = Date.parse(lease.expiresAt) + 60_000;
      world.clock(late);
      await world.ring(id);
      expect((await box.lease()).state).toBe("held");
      expect((await slept).exitCode).toBe(0);
      expect(Date.parse((await box.lease()).expiresAt ?? "")).toBe(late + 10_000);
    });

    it("[Y16] is one sandbox's own: others are not held up", async () => {
      const [one, two] = [await made(world), await made(world)];
      granted(await one.box.acquireLease());
      expect((await two.box.exec({ command: "echo free" })).stdout).toBe("free\n");
      granted(await two.box.acquireLease());
    });
  });
}
