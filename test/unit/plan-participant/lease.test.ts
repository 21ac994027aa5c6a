import { afterEach, describe, expect, it, vi } from "vitest";
import { timersAndClock } from "../sandbox/harness.ts";
import { FakeSandbox, granted, soon } from "./fake-sandbox.ts";

afterEach(() => vi.useRealTimers());

const day = 24 * 60 * 60_000;

describe("the lease of a run", () => {
  it("[PL54] is queued for like every other, in order", async () => {
    const sandbox = await FakeSandbox.member();
    const first = await granted(sandbox.api.acquireLease({ holder: "first" }));
    const before = sandbox.api.acquireLease({ holder: "before", waitMs: 10_000 });
    await sandbox.untilWaiting(1);
    const holding = [sandbox.hold(1, 10_000), sandbox.hold(1, 10_000)];
    await sandbox.untilWaiting(2);
    const after = sandbox.api.acquireLease({ holder: "after", waitMs: 10_000 });
    await sandbox.untilWaiting(3);
    await sandbox.api.releaseLease(first);
    await sandbox.api.releaseLease(await granted(before));
    expect(await Promise.all(holding)).toEqual([null, null]);
    await sandbox.prepare(1);
    expect(await sandbox.holders()).toEqual(["first", "before", "plan:release"]);
    await sandbox.finish(1, "commit");
    await sandbox.api.releaseLease(await granted(after));
    expect((await sandbox.holders()).at(-1)).toBe("after");
    expect((await sandbox.remainingResources()).lease).toBe("free");
  });

  it("[PL54] times out with the current holder, and leaves no waiter", async () => {
    const sandbox = await FakeSandbox.member();
    await sandbox.api.acquireLease({ holder: "busy" });
    const facts = { holder: "busy" };
    expect(await sandbox.hold(1, 0)).toMatchObject({ code: "lease_held", facts });
    expect(await sandbox.hold(1, 30)).toMatchObject({ code: "lease_wait_timeout", facts });
    expect(await sandbox.finish(1, "abort")).toEqual({ outcome: "aborted" });
    expect(await sandbox.remainingResources()).toMatchObject({ lease: "held", waiterCount: 0 });
  });

  it("[PL54] an abort ends the wait at once and for good", async () => {
    const sandbox = await FakeSandbox.member();
    const busy = await granted(sandbox.api.acquireLease({ holder: "busy" }));
    const holding = sandbox.hold(1, 20_000);
    await sandbox.untilWaiting(1);
    expect(await sandbox.finish(1, "abort")).toEqual({ outcome: "aborted" });
    expect(await holding).toMatchObject({ code: "stale_run" });
    expect((await sandbox.api.lease()).waiterCount).toBe(0);
    await sandbox.api.releaseLease(busy);
    expect(await sandbox.holders()).toEqual(["busy"]);
  });

  it("[PL54] running commands finish first, and later ones are refused because of the run", async () => {
    const sandbox = await FakeSandbox.member();
    const running = sandbox.api.exec({ command: "sleep 1" });
    await soon(() => expect(sandbox.container.agent?.running.size).toBe(1));
    const holding = sandbox.hold(1, 10_000);
    await sandbox.untilWaiting(1);
    await expect(sandbox.api.exec({ command: "true" })).rejects.toMatchObject({
      code: "lease_pending",
    });
    expect((await running).exitCode).toBe(0);
    expect(await holding).toBeNull();
    await expect(sandbox.api.exec({ command: "true" })).rejects.toMatchObject({
      code: "lease_held",
      facts: { holder: "plan:release" },
    });
  });

  it("[PL55] lasts as long as the run, whatever happens to time, idleness or the object", async () => {
    const sandbox = await FakeSandbox.member({ idleTimeoutMs: 60_000 });
    await sandbox.hold(1);
    const vote = await sandbox.prepare(1);
    const before = await sandbox.api.lease();
    const now = Date.now();
    for (let days = 1; days <= 3; days++) {
      await sandbox.evict();
      vi.useFakeTimers({ toFake: ["Date"], now: now + days * day });
      await sandbox.berth.ringAlarm(sandbox.id);
      expect(await sandbox.api.lease()).toMatchObject({
        state: "held",
        acquiredAt: before.acquiredAt,
      });
      expect((await sandbox.api.get()).state).toBe("running");
    }
    expect(await sandbox.prepare(1)).toEqual(vote);
    expect(await sandbox.finish(1, "commit")).toEqual({ outcome: "committed" });
    expect((await sandbox.remainingResources()).lease).toBe("free");
    vi.setSystemTime(now + 4 * day);
    await sandbox.berth.ringAlarm(sandbox.id);
    await soon(async () => expect((await sandbox.api.get()).state).toBe("paused"));
  });

  it("[PL55] keeps its place in the queue if its object is lost during the wait", async () => {
    const sandbox = await FakeSandbox.member();
    const busy = await granted(sandbox.api.acquireLease({ holder: "busy", ttlMs: 60_000 }));
    const cut = sandbox.hold(1, 20_000).catch(() => "cut");
    await sandbox.untilWaiting(1);
    const behind = sandbox.api.acquireLease({ holder: "behind", waitMs: 0, queueMs: 60_000 });
    const { ticket } = (await behind) as { ticket: string };
    sandbox.crash();
    const resumed = sandbox.hold(1, 20_000);
    await sandbox.untilWaiting(2);
    await sandbox.api.releaseLease(busy);
    expect(await resumed).toBeNull();
    await sandbox.prepare(1);
    await sandbox.finish(1, "commit");
    await granted(sandbox.api.acquireLease({ holder: "behind", ticket, waitMs: 10_000 }));
    expect(await sandbox.holders()).toEqual(["busy", "plan:release", "behind"]);
    void cut;
  });

  it("[PL59] if it is taken away before the vote, the run keeps nothing here", async () => {
    const lost = { code: "lease_lost" };
    for (const [name, takeLease] of Object.entries({
      broken: (sandbox: FakeSandbox) => sandbox.api.breakLease("now"),
      forced: (sandbox: FakeSandbox) => sandbox.api.pause({ force: true }),
    })) {
      const held = await FakeSandbox.committed();
      const before = await held.remainingResources();
      await held.hold(2);
      await takeLease(held);
      expect(await held.hold(2)).toMatchObject({ ...lost, facts: { reason: name } });
      expect(await held.prepare(2)).toMatchObject({ ...lost, facts: { reason: name } });
      expect(await held.finish(2, "abort")).toEqual({ outcome: "aborted" });
      await soon(async () => expect(await held.remainingResources()).toEqual(before));
    }
    const saving = await FakeSandbox.committed();
    const before = await saving.remainingResources();
    await saving.hold(2);
    const { preparing } = await saving.holdSnapshot(2);
    await saving.api.breakLease("now");
    saving.container.release();
    expect(await preparing).toMatchObject(lost);
    expect(await saving.finish(2, "abort")).toEqual({ outcome: "aborted" });
    await soon(async () => expect(await saving.remainingResources()).toEqual(before));
  });

  it("[PL111] a caller without the lease is refused at once during a snapshot, or waits if it asked for that", async () => {
    // Call first: an object already has timers that it waits for.
    vi.useFakeTimers({ toFake: [...timersAndClock], shouldAdvanceTime: true });
    const sandbox = await FakeSandbox.committed();
    await sandbox.hold(2);
    const { preparing } = await sandbox.holdSnapshot(2);
    await expect(sandbox.write("a.txt", "mine")).rejects.toMatchObject({ code: "lease_held" });
    await expect(sandbox.api.exec({ command: "true" })).rejects.toMatchObject({
      code: "lease_held",
    });
    const waiting = sandbox.api.exec({ command: "true" }, { waitMs: 10_000 });
    sandbox.container.release();
    expect(await preparing).toMatchObject({ yes: {} });
    await sandbox.finish(2, "abort");
    expect(await waiting).toMatchObject({ exitCode: 0 });
  });

  it("[PL59] if it is taken away after the vote, what was saved is committed, and later work stays", async () => {
    const sandbox = await FakeSandbox.committed();
    await sandbox.hold(2);
    const vote = await sandbox.prepare(2);
    await sandbox.api.breakLease("now");
    await sandbox.untilFree();
    const token = await granted(sandbox.api.acquireLease({ holder: "later" }));
    await sandbox.write("a.txt", "later", token);
    expect(await sandbox.finish(2, "commit")).toEqual({ outcome: "committed" });
    const { committed, lease } = await sandbox.remainingResources();
    expect([vote, lease]).toMatchObject([{ yes: { checkpoint: committed[0] } }, "held"]);
    expect(sandbox.files).toEqual({ "/workspace/a.txt": "later" });
    await sandbox.api.releaseLease(token);
  });
});

describe("a member that a new sandbox replaces", () => {
  const scope = { repo: "github.com/members/replaced", branch: "main" };
  const replace = { scope, onExisting: "replace" as const };

  it("[D3] is not ended while its plan commits, and can be when that is over", async () => {
    const sandbox = await FakeSandbox.member({ scope });
    const local = sandbox.berth.bind({ tenant: "local" });
    await sandbox.hold(1);
    await sandbox.prepare(1);
    const facts = { holder: "plan:release", sandbox: sandbox.id };
    await expect(local.create(replace)).rejects.toMatchObject({ code: "lease_held", facts });
    await expect(sandbox.api.destroy()).rejects.toMatchObject({ code: "lease_held" });
    expect(await sandbox.finish(1, "commit")).toMatchObject({ outcome: "committed" });
    expect((await local.create({ scope })).id).toBe(sandbox.id);
    expect(await local.create(replace)).toMatchObject({ replaced: sandbox.id });
    expect((await sandbox.api.get()).state).toMatch(/^destroy/);
  });

  it("[D3] is ended by force, and the run ends without it", async () => {
    const sandbox = await FakeSandbox.member({ scope });
    const local = sandbox.berth.bind({ tenant: "local" });
    await sandbox.hold(1);
    await sandbox.prepare(1);
    expect(await local.create(replace, { force: true })).toMatchObject({ replaced: sandbox.id });
    expect(await sandbox.finish(1, "abort")).toMatchObject({
      error: { code: "sandbox_destroyed" },
    });
  });

  it("[D3] is not ended by a caller without the right to end sandboxes", async () => {
    const sandbox = await FakeSandbox.member({ scope });
    const weak = sandbox.berth.bind({ tenant: "local", rights: ["read", "exec", "lease"] });
    for (const force of [false, true]) {
      const refused = weak.create(replace, { force });
      await expect(refused).rejects.toMatchObject({ code: "forbidden" });
    }
    expect((await weak.create({ scope })).id).toBe(sandbox.id);
  });

  it("[D16] is not ended for a sandbox that cannot be created", async () => {
    const sandbox = await FakeSandbox.member({ scope });
    const local = sandbox.berth.bind({ tenant: "local" });
    const network = { internet: true, allow: ["example.org"] };
    for (const force of [false, true]) {
      const refused = local.create({ ...replace, network }, { force });
      await expect(refused).rejects.toMatchObject({ code: "unsupported" });
    }
    expect((await local.create({ scope })).id).toBe(sandbox.id);
  });
});
