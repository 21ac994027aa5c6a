import { afterEach, describe, expect, it, vi } from "vitest";
import { limits } from "../../src/protocol/limits.ts";
import { Box, soon } from "./box.ts";

afterEach(() => {
  vi.useRealTimers();
});

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
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "Date"] });
    const early = box.finish(2, "roll_back");
    await vi.advanceTimersByTimeAsync(limits.planFinishMs);
    expect(await early).toBe("again");
    vi.useRealTimers();
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
  });
});
