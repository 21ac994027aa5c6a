import { describe, expect, it, vi } from "vitest";
import type { SandboxApi } from "../../../src/protocol/api.ts";
import { limits } from "../../../src/protocol/limits.ts";
import { timersOfOurs } from "../sandbox/timers.ts";
import { Box, soon } from "./fake-sandbox.ts";

timersOfOurs();

const rolledBack = { outcome: "rolled_back" };
const saved = { "/workspace/a.txt": "one" };

/** Committed once, changed since, and ready to go back. */
async function voted(change: (box: Box) => unknown = () => undefined): Promise<Box> {
  const box = await Box.committed();
  await box.write("a.txt", "two");
  await box.write("b.txt", "new");
  await change(box);
  expect(await box.hold(2)).toBeNull();
  const [checkpoint = ""] = (await box.left()).committed;
  expect(await box.prepare(2, "rollback")).toEqual({ yes: { checkpoint, changes: null } });
  return box;
}

describe("a rollback at a member", () => {
  it("[PL62] brings back the files of the last commit, in a new life, and keeps the commit", async () => {
    const box = await voted();
    const before = await box.api.get();
    expect(await box.finish(2, "roll_back")).toEqual(rolledBack);
    expect(box.files).toEqual(saved);
    const after = await box.api.get();
    expect(after).toMatchObject({ state: "running", files: "snapshot" });
    expect(after.incarnation).not.toBe(before.incarnation);
    await box.evict();
    expect(await box.finish(2, "roll_back")).toEqual(rolledBack);
    expect((await box.api.get()).incarnation).toBe(after.incarnation);
    expect(await box.left()).toMatchObject({
      committed: [expect.any(String)],
      trees: 1,
      lease: "free",
    });
    await box.write("a.txt", "three");
    expect((await box.run(3, "roll_back")).at(-1)).toEqual(rolledBack);
    expect(box.files).toEqual(saved);
  });

  it("[PL62] a paused and a failed member come back too, and one that was never committed is skipped", async () => {
    const paused = await voted((box) => box.api.pause());
    expect(await paused.finish(2, "roll_back")).toEqual(rolledBack);
    const failed = await voted((box) =>
      box.machine.die({ exitCode: null, signal: "SIGKILL", reason: "unknown" }),
    );
    expect(await failed.finish(2, "roll_back")).toEqual(rolledBack);
    expect([paused.files, failed.files]).toEqual([saved, saved]);
    const never = await Box.member();
    expect(await never.run(1, "roll_back")).toEqual([
      null,
      { yes: { checkpoint: null, changes: null } },
      { outcome: "skipped" },
    ]);
    expect(never.files).toEqual(saved);
    expect((await never.left()).lease).toBe("free");
  });

  it("[PL62] an abort of one changes nothing", async () => {
    const box = await voted();
    const { incarnation } = await box.api.get();
    const { files } = box;
    expect(await box.finish(2, "abort")).toEqual({ outcome: "aborted" });
    expect((await box.api.get()).incarnation).toBe(incarnation);
    expect(box.files).toEqual(files);
    expect(await box.left()).toMatchObject({ committed: [expect.any(String)], lease: "free" });
  });

  it("[PL62] goes on where its object was lost, and is told again when it lasts", async () => {
    const box = await voted();
    const { calls } = box.machine;
    const starts = () => calls.filter((verb) => verb.startsWith("start")).length;
    const before = starts();
    box.machine.fault = { verb: "start", hold: true };
    const cut = box.finish(2, "roll_back").catch(() => "cut");
    await soon(() => expect(starts()).toBe(before + 1));
    box.crash();
    const early = box.finish(2, "roll_back");
    await vi.advanceTimersByTimeAsync(limits.planFinishMs);
    expect(await early).toBe("again");
    expect((await box.api.lease()).state).toBe("held");
    box.machine.release();
    expect(await box.finish(2, "roll_back")).toEqual(rolledBack);
    expect(box.files).toEqual(saved);
    expect((await box.left()).lease).toBe("free");
    void cut;
  });

  it("[PL62] is tried a few times, and says why it cannot be done", async () => {
    const box = await voted();
    const { files } = box;
    box.machine.snapshots.clear();
    const before = box.machine.calls.length;
    expect(await box.finish(2, "roll_back")).toMatchObject({
      outcome: "failed",
      error: { code: "start_failed", message: expect.stringContaining("snapshot_missing") },
    });
    const tried = box.machine.calls.slice(before).filter((verb) => verb.startsWith("start"));
    expect(tried).toHaveLength(limits.planRestoreTriesMax);
    expect((await box.left()).lease).toBe("free");
    // What it had is still there.
    expect(await box.api.start()).toMatchObject({ state: "running" });
    expect(box.files).toEqual(files);
  });

  it.each(["too_many", "unavailable"] as const)(
    "[PL141] that is refused for what passes (%s) is tried as long as it takes, ever more seldom, and counts as no try",
    async (fail) => {
      const box = await voted();
      box.machine.fault = { verb: "start", fail, times: Number.POSITIVE_INFINITY };
      const before = box.machine.calls.length;
      for (let minutes = 0; minutes < 60; minutes++) {
        const asked = box.finish(2, "roll_back");
        await vi.advanceTimersByTimeAsync(60_000);
        expect(await asked).toBe("again");
      }
      const starts = box.machine.calls.slice(before).filter((verb) => verb.startsWith("start"));
      const restores = new Set(starts);
      expect(restores.size).toBeGreaterThan(limits.planRestoreTriesMax);
      expect(restores.size).toBeLessThan(10);
      expect((await box.api.lease()).holder).toBe("plan:release");
      box.machine.fault = undefined;
      const last = box.finish(2, "roll_back");
      await vi.advanceTimersByTimeAsync(limits.planRestorePauseMaxMs);
      const again = box.finish(2, "roll_back");
      await vi.advanceTimersByTimeAsync(limits.planFinishMs);
      await last;
      expect(await again).toEqual(rolledBack);
      expect(box.files).toEqual(saved);
      expect((await box.left()).lease).toBe("free");
    },
  );

  it("[PL62] a commit that is no longer kept is no reason to try: the vote says so", async () => {
    const box = await Box.committed();
    box.berth.rows(box.id, "UPDATE checkpoint SET expires_at = 1");
    await box.hold(2);
    expect(await box.prepare(2, "rollback")).toMatchObject({ no: { code: "checkpoint_expired" } });
    expect(await box.finish(2, "abort")).toEqual({ outcome: "aborted" });
    expect((await box.left()).lease).toBe("free");
  });

  it("[PL62] what was decided is done, whoever has taken the lease away since", async () => {
    const box = await voted();
    await box.api.breakLease("now");
    await soon(async () => expect((await box.api.lease()).state).toBe("free"));
    expect(await box.finish(2, "roll_back")).toEqual(rolledBack);
    expect(box.files).toEqual(saved);
    expect((await box.left()).lease).toBe("free");
  });

  it.each([false, true])(
    "[PL140] leaves whoever has got the lease since in peace, and has its turn after him (evicted: %s)",
    async (isEvicted) => {
      const box = await voted();
      await box.api.breakLease("mine first");
      await soon(async () => expect((await box.api.lease()).state).toBe("free"));
      const token = await granted(box.api.acquireLease({ holder: "later", ttlMs: 300_000 }));
      await box.write("a.txt", "later", token);
      const { incarnation } = await box.api.get();
      for (let round = 0; round < 3; round++) {
        const asked = Promise.all([box.finish(2, "roll_back"), box.finish(2, "roll_back")]);
        await vi.advanceTimersByTimeAsync(limits.planFinishMs);
        expect(await asked).toEqual(["again", "again"]);
        if (isEvicted) await box.evict();
        expect(await box.api.lease()).toMatchObject({ holder: "later", waiterCount: 1 });
      }
      expect(box.files["/workspace/a.txt"]).toBe("later");
      expect((await box.api.get()).incarnation).toBe(incarnation);
      const behind = box.api.acquireLease({ holder: "behind", waitMs: 20_000 });
      await soon(async () => expect((await box.api.lease()).waiterCount).toBe(2));
      const done = box.finish(2, "roll_back");
      await box.api.releaseLease(token);
      expect(await done).toEqual(rolledBack);
      expect(box.files).toEqual(saved);
      await box.api.releaseLease(await granted(behind));
      const holders = (await box.events("lease")).flatMap(({ what, holder }) =>
        what === "granted" ? [holder] : [],
      );
      expect(holders.slice(-3)).toEqual(["later", "plan:release", "behind"]);
      expect((await box.left()).lease).toBe("free");
    },
  );

  it("[PL140] has its turn when he who has the lease loses it too, and waits no more when the sandbox ends", async () => {
    for (const end of ["broken", "destroyed"] as const) {
      const box = await voted();
      await box.api.breakLease("now");
      await soon(async () => expect((await box.api.lease()).state).toBe("free"));
      await granted(box.api.acquireLease({ holder: "later" }));
      const waiting = box.finish(2, "roll_back");
      await soon(async () => expect((await box.api.lease()).waiterCount).toBe(1));
      if (end === "broken") {
        await box.api.breakLease("again");
        expect(await waiting).toEqual(rolledBack);
        expect((await box.left()).lease).toBe("free");
      } else {
        await box.api.destroy({ force: true });
        expect(await waiting).toMatchObject({
          outcome: "failed",
          error: { code: "sandbox_destroyed" },
        });
      }
    }
  });

  it("[PL140] looks at its lease before each try: one that was taken away during the first is waited for", async () => {
    const box = await voted();
    const { snapshots } = box.machine;
    const trees = [...snapshots];
    box.machine.fault = { verb: "start", hold: true };
    const waiting = box.finish(2, "roll_back");
    await soon(() => expect(box.machine.held.size).toBe(1));
    await box.api.breakLease("now");
    const between = granted(box.api.acquireLease({ holder: "between", waitMs: 20_000 }));
    await soon(async () => expect((await box.api.lease()).waiterCount).toBe(1));
    snapshots.clear();
    box.machine.release();
    const token = await between;
    await soon(async () => expect((await box.api.lease()).waiterCount).toBe(1));
    expect((await box.api.get()).state).toBe("failed");
    for (const [name, tree] of trees) snapshots.set(name, tree);
    await box.api.releaseLease(token);
    expect(await waiting).toEqual(rolledBack);
    expect(box.files).toEqual(saved);
    expect((await box.left()).lease).toBe("free");
  });
});

async function granted(call: ReturnType<SandboxApi["acquireLease"]>): Promise<string> {
  const lease = await call;
  if (!("token" in lease)) throw new Error("it was not granted");
  return lease.token;
}
