import { afterEach, describe, expect, it, vi } from "vitest";
import { limits } from "../../../src/protocol/limits.ts";
import { Box, soon } from "./fake-sandbox.ts";

afterEach(() => {
  vi.useRealTimers();
});

const isAborted = { outcome: "aborted" };
const isCommitted = { outcome: "committed" };
const none = { added: [], modified: [], deleted: [] };

describe("a commit at a member", () => {
  it("[PL56] saves its tree once, and tells what changed since the last commit", async () => {
    const box = await Box.member();
    await box.hold(1);
    const [first, joined] = await Promise.all([box.prepare(1), box.prepare(1)]);
    expect(first).toMatchObject({ yes: { changes: { ...none, added: ["a.txt"] } } });
    expect([joined, await box.prepare(1)]).toEqual([first, first]);
    expect(box.machine.calls.filter((verb) => verb.startsWith("snapshot"))).toHaveLength(1);
    expect(await box.finish(1, "commit")).toEqual(isCommitted);
    await box.write("a.txt", "two");
    await box.write("b.txt", "new");
    await box.hold(2);
    const changed = { added: ["b.txt"], modified: ["a.txt"] };
    expect(await box.prepare(2)).toMatchObject({ yes: { changes: changed } });
    await box.finish(2, "commit");
    await box.hold(3);
    const counts = { added: 0, modified: 0, deleted: 0 };
    expect(await box.prepare(3)).toMatchObject({ yes: { changes: { ...none, counts } } });
    await box.finish(3, "abort");
  });

  it("[PL56] an empty workspace is a commit too, and where trees cannot be compared no changes are told", async () => {
    const box = await Box.member();
    await box.api.removeFile("a.txt");
    expect(await box.run(1)).toMatchObject([null, { yes: { changes: none } }, isCommitted]);
    box.machine.comparesTrees = false;
    await box.evict();
    expect(await box.run(2)).toMatchObject([null, { yes: { changes: null } }, isCommitted]);
  });

  it("[PL57] whatever was asked and wherever its object was lost, an abort leaves all as it was", async () => {
    const steps: ((box: Box) => unknown)[] = [
      (box) => box.hold(2),
      (box) => box.evict(),
      (box) => box.hold(2),
      (box) => box.prepare(2),
      (box) => box.evict(),
      (box) => box.prepare(2),
    ];
    for (let upTo = 0; upTo <= steps.length; upTo++) {
      const box = await Box.committed();
      await box.write("a.txt", "two");
      const before = { files: box.files, left: await box.left() };
      expect(before.left).toMatchObject({ committed: [expect.any(String)], trees: 1 });
      for (const step of steps.slice(0, upTo)) await step(box);
      const saved = upTo >= 4 ? 2 : 1;
      expect(box.machine.snapshots.size).toBe(saved);
      expect(await box.finish(2, "abort")).toEqual(isAborted);
      await box.evict();
      expect(await box.finish(2, "abort")).toEqual(isAborted);
      expect(await box.prepare(2)).toMatchObject({ code: "stale_run" });
      await soon(async () => {
        expect({ files: box.files, left: await box.left() }).toEqual(before);
      });
      expect((await box.api.exec({ command: "true" })).exitCode).toBe(0);
    }
  });

  it("[PL57] lost while the tree is being saved, it can be prepared again, or aborted", async () => {
    for (const again of [true, false]) {
      const box = await Box.committed();
      const before = { files: box.files, left: await box.left() };
      await box.hold(2);
      box.machine.fault = { verb: "snapshot", hold: true };
      const cut = box.prepare(2).catch(() => "cut");
      await soon(() => expect(box.machine.held.size).toBe(1));
      box.crash();
      box.machine.release();
      expect(await cut).toBe("cut");
      if (again) expect(await box.prepare(2)).toMatchObject({ yes: { changes: none } });
      expect(await box.finish(2, "abort")).toEqual(isAborted);
      await soon(async () => {
        expect({ files: box.files, left: await box.left() }).toEqual(before);
      });
    }
  });

  it("[PL58] the last commit moves exactly once, and the one before it goes", async () => {
    const box = await Box.committed();
    const [first] = (await box.left()).committed;
    await box.write("a.txt", "two");
    await box.hold(2);
    const vote = await box.prepare(2);
    await box.evict();
    expect(await box.prepare(2)).toEqual(vote);
    expect(await box.finish(2, "commit")).toEqual(isCommitted);
    const flipped = await box.left();
    expect(flipped).toMatchObject({ lease: "free" });
    expect(flipped.committed).not.toContain(first);
    expect(vote).toMatchObject({ yes: { checkpoint: flipped.committed[0] } });
    await box.evict();
    expect(await box.finish(2, "commit")).toEqual(isCommitted);
    expect(await box.finish(2, "abort")).toEqual(isCommitted);
    await soon(() => expect(box.machine.snapshots.size).toBe(1));
    expect(await box.left()).toEqual({ ...flipped, trees: 1 });
    const told = (await box.events("plan")).map(({ what }) => what);
    expect(told).toEqual(["joined", "prepared", "committed", "prepared", "committed"]);
  });

  it("[PL61] a paused and a failed member are committed as they are, one that never ran is started", async () => {
    const paused = await Box.member();
    await paused.api.pause();
    expect(await paused.run(1)).toMatchObject([
      null,
      { yes: { changes: { added: ["a.txt"] } } },
      isCommitted,
    ]);
    expect((await paused.api.get()).state).toBe("paused");
    const failed = await Box.member();
    failed.machine.die({ exitCode: null, signal: "SIGKILL", reason: "unknown" });
    expect(await failed.run(1)).toMatchObject([
      null,
      { yes: { changes: { added: ["a.txt"] } } },
      isCommitted,
    ]);
    const never = await Box.member({ start: false });
    expect(await never.run(1)).toMatchObject([null, { yes: { changes: none } }, isCommitted]);
    const asleep = await Box.member({ start: false, wake: "never" });
    await asleep.hold(1);
    expect(await asleep.prepare(1)).toMatchObject({ code: "not_running" });
    expect(await asleep.finish(1, "abort")).toEqual(isAborted);
    expect(await asleep.left()).toEqual({ committed: [], trees: 0, lease: "free", waiterCount: 0 });
  });

  it("[PL63] its checkpoints take no room of the asked-for ones, stay while needed, and go with it", async () => {
    const box = await Box.member();
    for (let n = 0; n < limits.checkpointsMax; n++) await box.api.makeCheckpoint();
    await expect(box.api.makeCheckpoint()).rejects.toMatchObject({ code: "too_many" });
    await box.run(1);
    const [committed = ""] = (await box.left()).committed;
    await expect(box.api.removeCheckpoint(committed)).rejects.toMatchObject({
      code: "checkpoint_in_use",
    });
    expect(await box.leave()).toBeNull();
    await soon(() => expect(box.machine.snapshots.size).toBe(limits.checkpointsMax));
    expect((await box.left()).committed).toEqual([]);
    const gone = await Box.committed();
    await gone.api.destroy();
    expect(gone.machine.snapshots.size).toBe(0);
  });

  it("[PL67] an abort waits for what is being saved, and never takes the lease from it", async () => {
    // From the beginning: an object has timers on their way, and waits for them.
    vi.useFakeTimers({
      toFake: ["setTimeout", "clearTimeout", "performance", "Date"],
      shouldAdvanceTime: true,
    });
    const box = await Box.member();
    await box.hold(1);
    box.machine.fault = { verb: "snapshot", hold: true };
    const preparing = box.prepare(1);
    await soon(() => expect(box.machine.held.size).toBe(1));
    const early = box.finish(1, "abort");
    await vi.advanceTimersByTimeAsync(limits.planLetGoMs);
    expect(await early).toBe("again");
    expect((await box.api.lease()).state).toBe("held");
    const ending = box.finish(1, "abort");
    box.machine.release();
    expect(await preparing).toMatchObject({ yes: {} });
    expect(await ending).toEqual(isAborted);
    await soon(() => expect(box.machine.snapshots.size).toBe(0));
    expect(await box.left()).toEqual({ committed: [], trees: 0, lease: "free", waiterCount: 0 });
  });

  it("[PL67] a later run that comes meanwhile gets the lease when the earlier has let go by itself", async () => {
    const box = await Box.member();
    await box.hold(1);
    box.machine.fault = { verb: "snapshot", hold: true };
    const preparing = box.prepare(1);
    await soon(() => expect(box.machine.held.size).toBe(1));
    const next = box.hold(2, 10_000);
    await soon(async () => expect((await box.api.lease()).waiterCount).toBe(1));
    box.machine.release();
    expect(await preparing).toMatchObject({ code: "stale_run" });
    expect(await next).toBeNull();
    expect(await box.prepare(2)).toMatchObject({ yes: {} });
    expect(await box.finish(2, "commit")).toEqual(isCommitted);
    await soon(() => expect(box.machine.snapshots.size).toBe(1));
    expect((await box.left()).lease).toBe("free");
  });

  const cuts: [what: string, cut: (box: Box) => Promise<unknown>][] = [
    ["a commit of what was never voted", (box) => box.finish(1, "commit")],
    ["a rollback of what was never voted", (box) => box.finish(1, "roll_back")],
    ["the end of a run that it never heard of", (box) => box.finish(2, "abort")],
    ["a later run that wants it at once", (box) => box.hold(2)],
    ["a join that tells of a later run", (box) => box.join(2)],
    ["its way out of the plan", (box) => box.leave()],
  ];

  it.each(cuts)(
    "[PL67] after %s, in the middle of saving, nobody holds it any more",
    async (_, cut) => {
      const box = await Box.member();
      await box.hold(1);
      box.machine.fault = { verb: "snapshot", hold: true };
      const preparing = box.prepare(1);
      await soon(() => expect(box.machine.held.size).toBe(1));
      await cut(box);
      expect((await box.api.lease()).state).toBe("held");
      box.machine.release();
      expect(await preparing).toMatchObject({ code: "stale_run" });
      await soon(async () =>
        expect(await box.left()).toEqual({
          committed: [],
          trees: 0,
          lease: "free",
          waiterCount: 0,
        }),
      );
      expect(await box.api.exec({ command: "true" })).toMatchObject({ exitCode: 0 });
    },
  );
});
