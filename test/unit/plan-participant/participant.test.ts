import { describe, expect, it } from "vitest";
import { Box, soon } from "./fake-sandbox.ts";

const gone = { outcome: "failed", error: { code: "sandbox_destroyed" } };

describe("a member of a plan", () => {
  it("[PL64] shows its plan in what is told of it and in lists, as long as it is in it", async () => {
    const box = await Box.member();
    const tenant = box.berth.bind({ tenant: "local" });
    const shown = async () => [
      (await box.api.get()).plan,
      ...(await tenant.list()).sandboxes.map(({ plan }) => plan),
    ];
    expect(await shown()).toEqual(["release", "release"]);
    await box.evict();
    expect(await shown()).toEqual(["release", "release"]);
    expect(await box.join(0)).toBeNull();
    await box.leave();
    expect(await shown()).toEqual([undefined, undefined]);
    expect((await box.events("plan")).map(({ what }) => what)).toEqual(["joined", "left"]);
  });

  it("[PL64] its events tell each step with plan, run and checkpoint", async () => {
    const box = await Box.committed();
    const [checkpoint] = (await box.left()).committed;
    await box.hold(2);
    await box.finish(2, "abort");
    await box.run(3, "roll_back");
    const of = { type: "plan", plan: "release" };
    expect(await box.events("plan")).toEqual([
      { ...of, what: "joined" },
      { ...of, what: "prepared", commit: 1, checkpoint },
      { ...of, what: "committed", commit: 1, checkpoint },
      { ...of, what: "aborted", commit: 2 },
      { ...of, what: "prepared", commit: 3 },
      { ...of, what: "rolled_back", commit: 3, checkpoint },
    ]);
  });

  it("[PL97] a word to join or leave that comes late, when the plan has changed its members since, changes nothing", async () => {
    const box = await Box.committed();
    const object = box.berth.object(box.id);
    expect(await object.leavePlan(box.asking(1), 7)).toEqual({ ok: null });
    for (const late of [1, 6, 7]) {
      expect(await object.joinPlan(box.asking(9), late)).toMatchObject({
        refused: { code: "stale_run" },
      });
    }
    expect((await box.api.get()).plan).toBeUndefined();
    expect(await object.joinPlan(box.asking(1), 8)).toEqual({ ok: null });
    expect(await object.joinPlan(box.asking(1), 8)).toEqual({ ok: null });
    await box.berth.evict(box.id);
    expect(await object.leavePlan(box.asking(1), 7)).toEqual({ ok: null });
    expect((await box.api.get()).plan).toBe("release");
  });

  it("[PL98] who was refused once is not taken in by the same word later", async () => {
    const box = await Box.committed();
    const object = box.berth.object(box.id);
    const other = box.asking(1, "other");
    expect(await object.joinPlan(other, 1)).toMatchObject({ refused: { code: "in_other_plan" } });
    await box.leave();
    expect(await object.joinPlan(other, 1)).toMatchObject({ refused: { code: "stale_run" } });
    expect((await box.api.get()).plan).toBeUndefined();
  });

  it("[PL65] another plan is refused, another tenant and an unknown sandbox learn nothing", async () => {
    const box = await Box.committed();
    const object = box.berth.object(box.id);
    const other = box.asking(5, "other");
    expect(await object.joinPlan(other, 1)).toMatchObject({
      refused: { code: "in_other_plan", facts: { plan: "release" } },
    });
    expect(await object.holdForPlan(other, 0)).toMatchObject({ refused: { code: "stale_run" } });
    expect(await object.leavePlan(other, 2)).toEqual({ ok: null });
    expect((await box.api.get()).plan).toBe("release");
    const foreign = box.asking(5, "release", "other");
    const unknown = box.berth.object("invented");
    for (const answer of [
      await object.joinPlan(foreign, 1),
      await object.leavePlan(foreign, 1),
      await object.holdForPlan(foreign, 0),
      await object.prepareForPlan(foreign, "commit"),
      await object.finishForPlan(foreign, "abort"),
      await unknown.joinPlan(box.asking(1), 1),
      await unknown.finishForPlan(box.asking(1), "abort"),
    ]) {
      expect(answer).toMatchObject({ refused: { code: "not_found" } });
    }
    expect(await unknown.leavePlan(box.asking(1), 1)).toEqual({ ok: null });
    expect(await box.left()).toMatchObject({ committed: [expect.any(String)], lease: "free" });
  });

  it("[PL60] one that is destroyed at any step is told as failed, and leaves nothing", async () => {
    const steps: ((box: Box) => unknown)[] = [(box) => box.hold(2), (box) => box.prepare(2)];
    for (let upTo = 0; upTo <= steps.length; upTo++) {
      for (const verdict of ["commit", "abort", "roll_back"] as const) {
        const box = await Box.committed();
        for (const step of steps.slice(0, upTo)) await step(box);
        await box.api.destroy({ force: true });
        expect(await box.hold(2)).toMatchObject({ code: "sandbox_destroyed" });
        expect(await box.prepare(2)).toMatchObject({ code: "sandbox_destroyed" });
        expect(await box.finish(2, verdict)).toMatchObject(gone);
        await box.evict();
        expect(await box.finish(2, verdict)).toMatchObject(gone);
        await soon(() => expect(box.machine.snapshots.size).toBe(0));
        expect(await box.join(3)).toMatchObject({ code: "sandbox_destroyed" });
        expect(await box.leave()).toBeNull();
      }
    }
  });

  it("[PL60] one that is destroyed while it is being saved ends its prepare, and nobody waits for it", async () => {
    const box = await Box.committed();
    await box.hold(2);
    box.machine.fault = { verb: "snapshot", hold: true };
    const preparing = box.prepare(2);
    await soon(() => expect(box.machine.held.size).toBe(1));
    const ending = box.api.destroy({ force: true });
    await soon(async () => expect((await box.api.get()).state).toMatch(/^destroy/));
    box.machine.release();
    expect(await preparing).toMatchObject({ code: "sandbox_destroyed" });
    expect(await ending).toMatchObject({ state: "destroyed" });
    expect(await box.finish(2, "abort")).toMatchObject(gone);
    await soon(() => expect(box.machine.snapshots.size).toBe(0));
  });

  it("[PL60] what was committed before its end stays told as committed", async () => {
    const box = await Box.committed();
    await box.api.destroy();
    expect(await box.finish(1, "commit")).toEqual({ outcome: "committed" });
  });

  it("[PL68] a fresh instance gives up what an earlier one had saved or leased and could not note", async () => {
    const box = await Box.committed();
    const before = await box.left();
    await box.hold(2);
    await box.prepare(2);
    // As if it had been lost between the tree and the vote.
    box.berth.rows(box.id, "UPDATE seat SET phase = json_set(phase, '$.name', 'held')");
    await box.evict();
    expect((await box.left()).lease).toBe("held");
    await soon(() => expect(box.machine.snapshots.size).toBe(1));
    expect(await box.finish(2, "abort")).toEqual({ outcome: "aborted" });
    expect(await box.left()).toEqual(before);
    await box.hold(3);
    box.machine.fault = { verb: "snapshot", hold: true };
    const cut = box.prepare(3).catch(() => "cut");
    await soon(() => expect(box.machine.held.size).toBe(1));
    const next = box.hold(4, 10_000).catch(() => "cut");
    await soon(async () => expect((await box.api.lease()).waiterCount).toBe(1));
    box.crash();
    box.machine.release();
    expect(await cut).toBe("cut");
    expect(await box.hold(4, 10_000)).toBeNull();
    expect(await box.prepare(4)).toMatchObject({ yes: {} });
    expect(await box.finish(4, "commit")).toEqual({ outcome: "committed" });
    await soon(async () => expect(await box.left()).toMatchObject({ trees: 1, lease: "free" }));
    void next;
  });
});
