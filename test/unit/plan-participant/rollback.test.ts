import { describe, expect, it, vi } from "vitest";
import { limits } from "../../../src/protocol/limits.ts";
import { useFakeTimers } from "../sandbox/harness.ts";
import { FakeSandbox, granted, soon } from "./fake-sandbox.ts";

useFakeTimers();

const rolledBack = { outcome: "rolled_back" };
const saved = { "/workspace/a.txt": "one" };

/** Committed once, changed since, and prepared for a rollback. */
async function voted(
  change: (sandbox: FakeSandbox) => unknown = () => undefined,
): Promise<FakeSandbox> {
  const sandbox = await FakeSandbox.committed();
  await sandbox.write("a.txt", "two");
  await sandbox.write("b.txt", "new");
  await change(sandbox);
  expect(await sandbox.hold(2)).toBeNull();
  const [checkpoint = ""] = (await sandbox.remainingResources()).committed;
  expect(await sandbox.prepare(2, "rollback")).toEqual({ yes: { checkpoint, changes: null } });
  return sandbox;
}

describe("a rollback at a member", () => {
  it("[PL62] restores the files of the last commit in a new incarnation, and keeps the commit", async () => {
    const sandbox = await voted();
    const before = await sandbox.api.get();
    expect(await sandbox.finish(2, "roll_back")).toEqual(rolledBack);
    expect(sandbox.files).toEqual(saved);
    const after = await sandbox.api.get();
    expect(after).toMatchObject({ state: "running", files: "snapshot" });
    expect(after.incarnation).not.toBe(before.incarnation);
    await sandbox.evict();
    expect(await sandbox.finish(2, "roll_back")).toEqual(rolledBack);
    expect((await sandbox.api.get()).incarnation).toBe(after.incarnation);
    expect(await sandbox.remainingResources()).toMatchObject({
      committed: [expect.any(String)],
      trees: 1,
      lease: "free",
    });
    await sandbox.write("a.txt", "three");
    expect((await sandbox.run(3, "roll_back")).at(-1)).toEqual(rolledBack);
    expect(sandbox.files).toEqual(saved);
  });

  it("[PL62] a paused and a failed member are restored too, and one that was never committed is skipped", async () => {
    const paused = await voted((sandbox) => sandbox.api.pause());
    expect(await paused.finish(2, "roll_back")).toEqual(rolledBack);
    const failed = await voted((sandbox) =>
      sandbox.container.exitWith({ exitCode: null, signal: "SIGKILL", reason: "unknown" }),
    );
    expect(await failed.finish(2, "roll_back")).toEqual(rolledBack);
    expect([paused.files, failed.files]).toEqual([saved, saved]);
    const never = await FakeSandbox.member();
    expect(await never.run(1, "roll_back")).toEqual([
      null,
      { yes: { checkpoint: null, changes: null } },
      { outcome: "skipped" },
    ]);
    expect(never.files).toEqual(saved);
    expect((await never.remainingResources()).lease).toBe("free");
  });

  it("[PL62] an aborted rollback changes nothing", async () => {
    const sandbox = await voted();
    const { incarnation } = await sandbox.api.get();
    const { files } = sandbox;
    expect(await sandbox.finish(2, "abort")).toEqual({ outcome: "aborted" });
    expect((await sandbox.api.get()).incarnation).toBe(incarnation);
    expect(sandbox.files).toEqual(files);
    expect(await sandbox.remainingResources()).toMatchObject({
      committed: [expect.any(String)],
      lease: "free",
    });
  });

  it("[PL62] continues after its object was lost, and asks to be called again when it takes long", async () => {
    const sandbox = await voted();
    const { calls } = sandbox.container;
    const starts = () => calls.filter((verb) => verb.startsWith("start")).length;
    const before = starts();
    sandbox.container.fault = { verb: "start", hold: true };
    const cut = sandbox.finish(2, "roll_back").catch(() => "cut");
    await soon(() => expect(starts()).toBe(before + 1));
    sandbox.crash();
    const early = sandbox.finish(2, "roll_back");
    await vi.advanceTimersByTimeAsync(limits.planFinishMs);
    expect(await early).toBe("again");
    expect((await sandbox.api.lease()).state).toBe("held");
    sandbox.container.release();
    expect(await sandbox.finish(2, "roll_back")).toEqual(rolledBack);
    expect(sandbox.files).toEqual(saved);
    expect((await sandbox.remainingResources()).lease).toBe("free");
    void cut;
  });

  it("[PL62] is retried a few times, then reports why it failed", async () => {
    const sandbox = await voted();
    const { files } = sandbox;
    sandbox.container.snapshots.clear();
    const before = sandbox.container.calls.length;
    expect(await sandbox.finish(2, "roll_back")).toMatchObject({
      outcome: "failed",
      error: { code: "start_failed", message: expect.stringContaining("snapshot_missing") },
    });
    const tried = sandbox.container.calls.slice(before).filter((verb) => verb.startsWith("start"));
    expect(tried).toHaveLength(limits.planRestoreTriesMax);
    expect((await sandbox.remainingResources()).lease).toBe("free");
    // Its files are still there.
    expect(await sandbox.api.start()).toMatchObject({ state: "running" });
    expect(sandbox.files).toEqual(files);
  });

  it.each(["too_many", "unavailable"] as const)(
    "[PL141] that fails temporarily (%s) is retried with growing pauses and without a limit",
    async (fail) => {
      const sandbox = await voted();
      sandbox.container.fault = { verb: "start", fail, times: Number.POSITIVE_INFINITY };
      const before = sandbox.container.calls.length;
      for (let minutes = 0; minutes < 60; minutes++) {
        const finishing = sandbox.finish(2, "roll_back");
        await vi.advanceTimersByTimeAsync(60_000);
        expect(await finishing).toBe("again");
      }
      const starts = sandbox.container.calls
        .slice(before)
        .filter((verb) => verb.startsWith("start"));
      const restores = new Set(starts);
      expect(restores.size).toBeGreaterThan(limits.planRestoreTriesMax);
      expect(restores.size).toBeLessThan(10);
      expect((await sandbox.api.lease()).holder).toBe("plan:release");
      sandbox.container.fault = undefined;
      const last = sandbox.finish(2, "roll_back");
      await vi.advanceTimersByTimeAsync(limits.planRestorePauseMaxMs);
      const resumed = sandbox.finish(2, "roll_back");
      await vi.advanceTimersByTimeAsync(limits.planFinishMs);
      await last;
      expect(await resumed).toEqual(rolledBack);
      expect(sandbox.files).toEqual(saved);
      expect((await sandbox.remainingResources()).lease).toBe("free");
    },
  );

  it("[PL62] an expired commit fails the vote", async () => {
    const sandbox = await FakeSandbox.committed();
    sandbox.berth.rows(sandbox.id, "UPDATE checkpoint SET expires_at = 1");
    await sandbox.hold(2);
    expect(await sandbox.prepare(2, "rollback")).toMatchObject({
      no: { code: "checkpoint_expired" },
    });
    expect(await sandbox.finish(2, "abort")).toEqual({ outcome: "aborted" });
    expect((await sandbox.remainingResources()).lease).toBe("free");
  });

  it("[PL62] a decision is carried out even if the lease was taken away since", async () => {
    const sandbox = await voted();
    await sandbox.api.breakLease("now");
    await sandbox.untilFree();
    expect(await sandbox.finish(2, "roll_back")).toEqual(rolledBack);
    expect(sandbox.files).toEqual(saved);
    expect((await sandbox.remainingResources()).lease).toBe("free");
  });

  it.each([false, true])(
    "[PL140] does not interrupt a later holder of the lease, and continues after it (evicted: %s)",
    async (isEvicted) => {
      const sandbox = await voted();
      await sandbox.api.breakLease("mine first");
      await sandbox.untilFree();
      const token = await granted(sandbox.api.acquireLease({ holder: "later", ttlMs: 300_000 }));
      await sandbox.write("a.txt", "later", token);
      const { incarnation } = await sandbox.api.get();
      for (let round = 0; round < 3; round++) {
        const finishing = Promise.all([
          sandbox.finish(2, "roll_back"),
          sandbox.finish(2, "roll_back"),
        ]);
        await vi.advanceTimersByTimeAsync(limits.planFinishMs);
        expect(await finishing).toEqual(["again", "again"]);
        if (isEvicted) await sandbox.evict();
        expect(await sandbox.api.lease()).toMatchObject({ holder: "later", waiterCount: 1 });
      }
      expect(sandbox.files["/workspace/a.txt"]).toBe("later");
      expect((await sandbox.api.get()).incarnation).toBe(incarnation);
      const behind = sandbox.api.acquireLease({ holder: "behind", waitMs: 20_000 });
      await sandbox.untilWaiting(2);
      const done = sandbox.finish(2, "roll_back");
      await sandbox.api.releaseLease(token);
      expect(await done).toEqual(rolledBack);
      expect(sandbox.files).toEqual(saved);
      await sandbox.api.releaseLease(await granted(behind));
      expect((await sandbox.holders()).slice(-3)).toEqual(["later", "plan:release", "behind"]);
      expect((await sandbox.remainingResources()).lease).toBe("free");
    },
  );

  it("[PL140] continues when that holder loses the lease, and stops waiting when the sandbox ends", async () => {
    for (const end of ["broken", "destroyed"] as const) {
      const sandbox = await voted();
      await sandbox.api.breakLease("now");
      await sandbox.untilFree();
      await granted(sandbox.api.acquireLease({ holder: "later" }));
      const waiting = sandbox.finish(2, "roll_back");
      await sandbox.untilWaiting(1);
      if (end === "broken") {
        await sandbox.api.breakLease("again");
        expect(await waiting).toEqual(rolledBack);
        expect((await sandbox.remainingResources()).lease).toBe("free");
      } else {
        await sandbox.api.destroy({ force: true });
        expect(await waiting).toMatchObject({
          outcome: "failed",
          error: { code: "sandbox_destroyed" },
        });
      }
    }
  });

  it("[PL140] checks its lease before each try, and queues for it if it was taken away", async () => {
    const sandbox = await voted();
    const { snapshots } = sandbox.container;
    const trees = [...snapshots];
    sandbox.container.fault = { verb: "start", hold: true };
    const waiting = sandbox.finish(2, "roll_back");
    await soon(() => expect(sandbox.container.held.size).toBe(1));
    await sandbox.api.breakLease("now");
    const between = granted(sandbox.api.acquireLease({ holder: "between", waitMs: 20_000 }));
    await sandbox.untilWaiting(1);
    snapshots.clear();
    sandbox.container.release();
    const token = await between;
    await sandbox.untilWaiting(1);
    expect((await sandbox.api.get()).state).toBe("failed");
    for (const [name, tree] of trees) snapshots.set(name, tree);
    await sandbox.api.releaseLease(token);
    expect(await waiting).toEqual(rolledBack);
    expect(sandbox.files).toEqual(saved);
    expect((await sandbox.remainingResources()).lease).toBe("free");
  });
});
