/** The contract of how a lease ends: by time, by force, by others, with its sandbox. */
import { describe, expect, it } from "vitest";
import type { SandboxApi } from "../../../src/protocol/api.ts";
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

export function leaseEndContract(world: World): void {
  const itCounting = itWith(world, "ran");
  const itEvicting = itWith(world, "evict");
  const running = (id: string, count = 1) =>
    eventually(async () => expect((await world.inside(id)).running).toBe(count));
  const waiting = (box: SandboxApi, count: number) =>
    eventually(async () => expect((await box.lease()).waiterCount).toBe(count));
  const kinds = async (box: SandboxApi) =>
    (await eventsOfType(box, "lease")).map(({ what, holder }) => `${what} ${holder}`);

  describe("the end of a lease", () => {
    itWith(
      world,
      "clock",
      "ring",
    )("[Q12] comes at its time, by the alarm, once; the next waiter gets it", async () => {
      const { id, box } = await createSandbox(world);
      const now = Date.now();
      world.clock(now);
      const lease = acquireLease(await box.acquireLease({ holder: "one", ttlMs: 5_000 }));
      const waits = box.acquireLease({ holder: "two", waitMs: 20_000 });
      await waiting(box, 1);
      world.clock(now + 4_999);
      await world.ring(id);
      expect(await box.lease()).toMatchObject({ state: "held", holder: "one" });
      world.clock(now + 5_000);
      expect(await world.ring(id)).toBe(true);
      const next = acquireLease(await waits);
      // One for the loss, one for the grant.
      expect(next.fence).toBe(lease.fence + 2);
      await expectRefusal(box.exec({ command: "true" }, { lease: lease.token }), "lease_lost", {
        reason: "expired",
      });
      await world.ring(id);
      expect(await kinds(box)).toEqual(["granted one", "lost one", "drained one", "granted two"]);
    });

    it("[Q14] is refused while its own calls run, unless forced: then they end first", async () => {
      const { id, box } = await createSandbox(world);
      const { token } = acquireLease(await box.acquireLease({ holder: "one" }));
      const cut = refusal(box.exec({ command: "sleep 60" }, { lease: token }));
      await running(id);
      await expectRefusal(box.releaseLease(token), "lease_busy", { running: 1 });
      expect((await box.lease()).state).toBe("held");
      const released = await box.releaseLease(token, { force: true });
      expect(["draining", "released"]).toContain(released.state);
      expect(await cut).toMatchObject({
        code: "operation_interrupted",
        facts: { admitted: true, reason: "lease_lost" },
      });
      await eventually(async () => expect((await box.lease()).state).toBe("free"));
      expect(await box.releaseLease(token)).toEqual({ state: "released" });
    });

    itCounting(
      "[Q15] [Q16] can be broken by a caller with the right; its work ends before the next holder begins",
      async () => {
        const { id, box } = await createSandbox(world);
        const lease = acquireLease(await box.acquireLease({ holder: "one", ttlMs: 300_000 }));
        const cut = refusal(box.exec({ command: "sleep 60" }, { lease: lease.token }));
        await running(id);
        const waits = box.acquireLease({ holder: "two", waitMs: 20_000 });
        await waiting(box, 1);
        const leaser = await world.leaser(id);
        await expectRefusal(leaser.breakLease("I want it"), "forbidden", { right: "admin" });
        expect((await box.lease()).holder).toBe("one");
        await box.breakLease("it is stuck");
        const next = acquireLease(await waits);
        expect((await world.inside(id)).running).toBe(0);
        expect((await cut).code).toBe("operation_interrupted");
        expect(next.fence).toBeGreaterThan(lease.fence + 1);
        const late = [
          box.exec({ command: "echo late" }, { lease: lease.token }),
          box.renewLease(lease.token),
          box.releaseLease(lease.token),
          box.pause({ lease: lease.token }),
        ];
        await expectRefusals(late, "lease_lost", { reason: "broken" });
        expect((await world.inside(id)).ran).toEqual(["sleep 60"]);
        expect(await eventsOfType(box, "lease")).toMatchObject([
          { what: "granted", holder: "one" },
          { what: "lost", holder: "one", reason: "broken", by: "local: it is stuck" },
          { what: "drained", holder: "one" },
          { what: "granted", holder: "two" },
        ]);
      },
    );

    it("[Q15] of a lease that nobody holds does nothing", async () => {
      const { box } = await createSandbox(world);
      const { fence } = await box.lease();
      expect(await box.breakLease("to be sure")).toEqual({ state: "released" });
      expect(await box.lease()).toMatchObject({ state: "free", fence });
      expect(await kinds(box)).toEqual([]);
    });

    it("[Y3] comes with a forced pause, which records who did it; others are refused", async () => {
      const { id, box } = await createSandbox(world);
      const { token } = acquireLease(await box.acquireLease({ holder: "one" }));
      const cut = refusal(box.exec({ command: "sleep 60" }, { lease: token }));
      await running(id);
      await expectRefusal(box.pause(), "lease_held");
      expect((await box.pause({ force: true })).state).toBe("paused");
      expect((await cut).code).toBe("operation_interrupted");
      expect((await eventsOfType(box, "lease")).find(({ what }) => what === "lost")).toMatchObject({
        holder: "one",
        reason: "forced",
        by: "local",
      });
      expect(await refusal(box.renewLease(token))).toMatchObject({ facts: { reason: "forced" } });
      await eventually(async () => expect((await box.lease()).state).toBe("free"));
      expect((await box.exec({ command: "echo back" })).stdout).toBe("back\n");
    });

    it("[Q22] comes with the end of the sandbox, for the holder and all waiters", async () => {
      const { box } = await createSandbox(world);
      const { token } = acquireLease(await box.acquireLease({ holder: "one" }));
      const waits = refusal(box.acquireLease({ holder: "two", waitMs: 20_000 }));
      await waiting(box, 1);
      const exec = refusal(box.exec({ command: "true" }, { waitMs: 20_000 }));
      await waiting(box, 2);
      await expectRefusal(box.destroy(), "lease_held");
      expect((await box.get()).state).toBe("running");
      expect((await box.destroy({ force: true })).state).toBe("destroyed");
      expect((await waits).code).toBe("sandbox_destroyed");
      expect((await exec).code).toBe("sandbox_destroyed");
      await expectRefusal(box.renewLease(token), "sandbox_destroyed");
      expect(await box.lease()).toMatchObject({ state: "free", waiterCount: 0 });
      expect((await eventsOfType(box, "lease")).at(-1)).toMatchObject({
        holder: "one",
        by: "local",
      });
    });

    it("[Y5] does not come with a holder's own pause, start and destroy", async () => {
      const { box } = await createSandbox(world);
      const { token } = acquireLease(await box.acquireLease({ holder: "one" }));
      expect((await box.pause({ lease: token })).state).toBe("paused");
      expect(await box.lease()).toMatchObject({ state: "held", holder: "one" });
      expect((await box.exec({ command: "echo on" }, { lease: token })).stdout).toBe("on\n");
      expect((await box.destroy({ lease: token })).state).toBe("destroyed");
    });

    itEvicting("[Y17] finds holder, fence and queue order after each eviction", async () => {
      const { id, box } = await createSandbox(world);
      const first = acquireLease(await box.acquireLease({ holder: "one", ttlMs: 300_000 }));
      const asks = (n: number) =>
        box.acquireLease({ holder: `w${n}`, queueMs: 600_000, ticket: `ticket-of-waiter-${n}` });
      for (let n = 0; n < 3; n++) {
        queued(await asks(n));
        await world.evict(id);
      }
      expect(await box.lease()).toMatchObject({
        holder: "one",
        waiters: [{ holder: "w0" }, { holder: "w1" }, { holder: "w2" }],
      });
      let { token, fence } = first;
      for (let n = 0; n < 3; n++) {
        expect((await box.exec({ command: "true" }, { lease: token })).exitCode).toBe(0);
        await world.evict(id);
        await box.releaseLease(token);
        await world.evict(id);
        expect((await box.lease()).state).toBe("offered");
        for (let late = n + 1; late < 3; late++) queued(await asks(late));
        await world.evict(id);
        const next = acquireLease(await asks(n));
        expect(next.fence).toBeGreaterThan(fence);
        ({ token, fence } = next);
      }
    });
  });
}
