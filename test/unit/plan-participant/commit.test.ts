import { afterEach, describe, expect, it, vi } from "vitest";
import { limits } from "../../../src/protocol/limits.ts";
import { timersAndClock } from "../sandbox/harness.ts";
import { FakeSandbox, noResources, soon } from "./fake-sandbox.ts";

afterEach(() => vi.useRealTimers());

const isAborted = { outcome: "aborted" };
const isCommitted = { outcome: "committed" };
const none = { added: [], modified: [], deleted: [] };

describe("a commit at a member", () => {
  it("[PL56] saves its tree once, and lists the changes since the last commit", async () => {
    const sandbox = await FakeSandbox.member();
    await sandbox.hold(1);
    const [first, joined] = await Promise.all([sandbox.prepare(1), sandbox.prepare(1)]);
    expect(first).toMatchObject({ yes: { changes: { ...none, added: ["a.txt"] } } });
    expect([joined, await sandbox.prepare(1)]).toEqual([first, first]);
    expect(sandbox.container.calls.filter((verb) => verb.startsWith("snapshot"))).toHaveLength(1);
    expect(await sandbox.finish(1, "commit")).toEqual(isCommitted);
    await sandbox.write("a.txt", "two");
    await sandbox.write("b.txt", "new");
    await sandbox.hold(2);
    const changed = { added: ["b.txt"], modified: ["a.txt"] };
    expect(await sandbox.prepare(2)).toMatchObject({ yes: { changes: changed } });
    await sandbox.finish(2, "commit");
    await sandbox.hold(3);
    const counts = { added: 0, modified: 0, deleted: 0 };
    expect(await sandbox.prepare(3)).toMatchObject({ yes: { changes: { ...none, counts } } });
    await sandbox.finish(3, "abort");
  });

  it("[PL56] commits an empty workspace too, and lists no changes where trees cannot be compared", async () => {
    const sandbox = await FakeSandbox.member();
    await sandbox.api.removeFile("a.txt");
    expect(await sandbox.run(1)).toMatchObject([null, { yes: { changes: none } }, isCommitted]);
    sandbox.container.comparesTrees = false;
    await sandbox.evict();
    expect(await sandbox.run(2)).toMatchObject([null, { yes: { changes: null } }, isCommitted]);
  });

  it("[PL57] an abort restores the state before, after any step and any loss of the object", async () => {
    const steps: ((sandbox: FakeSandbox) => unknown)[] = [
      (sandbox) => sandbox.hold(2),
      (sandbox) => sandbox.evict(),
      (sandbox) => sandbox.hold(2),
      (sandbox) => sandbox.prepare(2),
      (sandbox) => sandbox.evict(),
      (sandbox) => sandbox.prepare(2),
    ];
    for (let upTo = 0; upTo <= steps.length; upTo++) {
      const sandbox = await FakeSandbox.committed();
      await sandbox.write("a.txt", "two");
      const before = { files: sandbox.files, left: await sandbox.remainingResources() };
      expect(before.left).toMatchObject({ committed: [expect.any(String)], trees: 1 });
      for (const step of steps.slice(0, upTo)) await step(sandbox);
      const saved = upTo >= 4 ? 2 : 1;
      expect(sandbox.container.snapshots.size).toBe(saved);
      expect(await sandbox.finish(2, "abort")).toEqual(isAborted);
      await sandbox.evict();
      expect(await sandbox.finish(2, "abort")).toEqual(isAborted);
      expect(await sandbox.prepare(2)).toMatchObject({ code: "stale_run" });
      await soon(async () => {
        expect({ files: sandbox.files, left: await sandbox.remainingResources() }).toEqual(before);
      });
      expect((await sandbox.api.exec({ command: "true" })).exitCode).toBe(0);
    }
  });

  it("[PL57] if the object is lost during the snapshot, it can be prepared again or aborted", async () => {
    for (const preparesAgain of [true, false]) {
      const sandbox = await FakeSandbox.committed();
      const before = { files: sandbox.files, left: await sandbox.remainingResources() };
      await sandbox.hold(2);
      sandbox.container.fault = { verb: "snapshot", hold: true };
      const cut = sandbox.prepare(2).catch(() => "cut");
      await soon(() => expect(sandbox.container.held.size).toBe(1));
      sandbox.crash();
      sandbox.container.release();
      expect(await cut).toBe("cut");
      if (preparesAgain) expect(await sandbox.prepare(2)).toMatchObject({ yes: { changes: none } });
      expect(await sandbox.finish(2, "abort")).toEqual(isAborted);
      await soon(async () => {
        expect({ files: sandbox.files, left: await sandbox.remainingResources() }).toEqual(before);
      });
    }
  });

  it("[PL58] the last commit moves exactly once, and the one before it goes", async () => {
    const sandbox = await FakeSandbox.committed();
    const [first] = (await sandbox.remainingResources()).committed;
    await sandbox.write("a.txt", "two");
    await sandbox.hold(2);
    const vote = await sandbox.prepare(2);
    await sandbox.evict();
    expect(await sandbox.prepare(2)).toEqual(vote);
    expect(await sandbox.finish(2, "commit")).toEqual(isCommitted);
    const flipped = await sandbox.remainingResources();
    expect(flipped).toMatchObject({ lease: "free" });
    expect(flipped.committed).not.toContain(first);
    expect(vote).toMatchObject({ yes: { checkpoint: flipped.committed[0] } });
    await sandbox.evict();
    expect(await sandbox.finish(2, "commit")).toEqual(isCommitted);
    expect(await sandbox.finish(2, "abort")).toEqual(isCommitted);
    await soon(() => expect(sandbox.container.snapshots.size).toBe(1));
    expect(await sandbox.remainingResources()).toEqual({ ...flipped, trees: 1 });
    const steps = (await sandbox.events("plan")).map(({ what }) => what);
    expect(steps).toEqual(["joined", "prepared", "committed", "prepared", "committed"]);
  });

  it("[PL61] a paused and a failed member are committed as they are, one that never ran is started", async () => {
    const paused = await FakeSandbox.member();
    await paused.api.pause();
    expect(await paused.run(1)).toMatchObject([
      null,
      { yes: { changes: { added: ["a.txt"] } } },
      isCommitted,
    ]);
    expect((await paused.api.get()).state).toBe("paused");
    const failed = await FakeSandbox.member();
    failed.container.exitWith({ exitCode: null, signal: "SIGKILL", reason: "unknown" });
    expect(await failed.run(1)).toMatchObject([
      null,
      { yes: { changes: { added: ["a.txt"] } } },
      isCommitted,
    ]);
    const never = await FakeSandbox.member({ start: false });
    expect(await never.run(1)).toMatchObject([null, { yes: { changes: none } }, isCommitted]);
    const asleep = await FakeSandbox.member({ start: false, wake: "never" });
    await asleep.hold(1);
    expect(await asleep.prepare(1)).toMatchObject({ code: "not_running" });
    expect(await asleep.finish(1, "abort")).toEqual(isAborted);
    expect(await asleep.remainingResources()).toEqual(noResources);
  });

  it("[PL63] its checkpoints do not count towards the limit, stay while needed, and are removed with it", async () => {
    const sandbox = await FakeSandbox.member();
    for (let n = 0; n < limits.checkpointsMax; n++) await sandbox.api.makeCheckpoint();
    await expect(sandbox.api.makeCheckpoint()).rejects.toMatchObject({ code: "too_many" });
    await sandbox.run(1);
    const [committed = ""] = (await sandbox.remainingResources()).committed;
    await expect(sandbox.api.removeCheckpoint(committed)).rejects.toMatchObject({
      code: "checkpoint_in_use",
    });
    expect(await sandbox.leave()).toBeNull();
    await soon(() => expect(sandbox.container.snapshots.size).toBe(limits.checkpointsMax));
    expect((await sandbox.remainingResources()).committed).toEqual([]);
    const destroyed = await FakeSandbox.committed();
    await destroyed.api.destroy();
    expect(destroyed.container.snapshots.size).toBe(0);
  });

  it("[PL67] an abort waits for the snapshot, and does not take the lease from it", async () => {
    // Call first: an object already has timers that it waits for.
    vi.useFakeTimers({ toFake: [...timersAndClock], shouldAdvanceTime: true });
    const sandbox = await FakeSandbox.member();
    await sandbox.hold(1);
    const { preparing } = await sandbox.holdSnapshot(1);
    const early = sandbox.finish(1, "abort");
    await vi.advanceTimersByTimeAsync(limits.planAbortMs);
    expect(await early).toBe("again");
    expect((await sandbox.api.lease()).state).toBe("held");
    const ending = sandbox.finish(1, "abort");
    sandbox.container.release();
    expect(await preparing).toMatchObject({ yes: {} });
    expect(await ending).toEqual(isAborted);
    await soon(() => expect(sandbox.container.snapshots.size).toBe(0));
    expect(await sandbox.remainingResources()).toEqual(noResources);
  });

  it("[PL67] a later run gets the lease when the earlier one has released it by itself", async () => {
    const sandbox = await FakeSandbox.member();
    await sandbox.hold(1);
    const { preparing } = await sandbox.holdSnapshot(1);
    const next = sandbox.hold(2, 10_000);
    await sandbox.untilWaiting(1);
    sandbox.container.release();
    expect(await preparing).toMatchObject({ code: "stale_run" });
    expect(await next).toBeNull();
    expect(await sandbox.prepare(2)).toMatchObject({ yes: {} });
    expect(await sandbox.finish(2, "commit")).toEqual(isCommitted);
    await soon(() => expect(sandbox.container.snapshots.size).toBe(1));
    expect((await sandbox.remainingResources()).lease).toBe("free");
  });

  const cuts: [what: string, cut: (sandbox: FakeSandbox) => Promise<unknown>][] = [
    ["a commit of what was never voted", (sandbox) => sandbox.finish(1, "commit")],
    ["a rollback of what was never voted", (sandbox) => sandbox.finish(1, "roll_back")],
    ["the end of an unknown run", (sandbox) => sandbox.finish(2, "abort")],
    ["a later run", (sandbox) => sandbox.hold(2)],
    ["a join with a later run", (sandbox) => sandbox.join(2)],
    ["leaving the plan", (sandbox) => sandbox.leave()],
  ];

  it.each(cuts)("[PL67] after %s during the snapshot, the lease is free", async (_, cut) => {
    const sandbox = await FakeSandbox.member();
    await sandbox.hold(1);
    const { preparing } = await sandbox.holdSnapshot(1);
    await cut(sandbox);
    expect((await sandbox.api.lease()).state).toBe("held");
    sandbox.container.release();
    expect(await preparing).toMatchObject({ code: "stale_run" });
    await soon(async () => expect(await sandbox.remainingResources()).toEqual(noResources));
    expect(await sandbox.api.exec({ command: "true" })).toMatchObject({ exitCode: 0 });
  });
});
