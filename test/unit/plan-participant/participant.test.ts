import { describe, expect, it } from "vitest";
import { FakeSandbox, soon } from "./fake-sandbox.ts";

const destroyed = { outcome: "failed", error: { code: "sandbox_destroyed" } };

describe("a member of a plan", () => {
  it("[PL64] shows its plan in its view and in lists while it is a member", async () => {
    const sandbox = await FakeSandbox.member();
    const tenant = sandbox.berth.bind({ tenant: "local" });
    const shown = async () => [
      (await sandbox.api.get()).plan,
      ...(await tenant.list()).sandboxes.map(({ plan }) => plan),
    ];
    expect(await shown()).toEqual(["release", "release"]);
    await sandbox.evict();
    expect(await shown()).toEqual(["release", "release"]);
    expect(await sandbox.join(0)).toBeNull();
    await sandbox.leave();
    expect(await shown()).toEqual([undefined, undefined]);
    expect((await sandbox.events("plan")).map(({ what }) => what)).toEqual(["joined", "left"]);
  });

  it("[PL64] has an event for each step, with plan, run and checkpoint", async () => {
    const sandbox = await FakeSandbox.committed();
    const [checkpoint] = (await sandbox.remainingResources()).committed;
    await sandbox.hold(2);
    await sandbox.finish(2, "abort");
    await sandbox.run(3, "roll_back");
    const base = { type: "plan", plan: "release" };
    expect(await sandbox.events("plan")).toEqual([
      { ...base, what: "joined" },
      { ...base, what: "prepared", commit: 1, checkpoint },
      { ...base, what: "committed", commit: 1, checkpoint },
      { ...base, what: "aborted", commit: 2 },
      { ...base, what: "prepared", commit: 3 },
      { ...base, what: "rolled_back", commit: 3, checkpoint },
    ]);
  });

  it("[PL97] a late join or leave, after newer membership changes, changes nothing", async () => {
    const sandbox = await FakeSandbox.committed();
    const object = sandbox.berth.object(sandbox.id);
    expect(await object.leavePlan(sandbox.asPlan(1), 7)).toEqual({ ok: null });
    for (const late of [1, 6, 7]) {
      expect(await object.joinPlan(sandbox.asPlan(9), late)).toMatchObject({
        refused: { code: "stale_run" },
      });
    }
    expect((await sandbox.api.get()).plan).toBeUndefined();
    expect(await object.joinPlan(sandbox.asPlan(1), 8)).toEqual({ ok: null });
    expect(await object.joinPlan(sandbox.asPlan(1), 8)).toEqual({ ok: null });
    await sandbox.berth.evict(sandbox.id);
    expect(await object.leavePlan(sandbox.asPlan(1), 7)).toEqual({ ok: null });
    expect((await sandbox.api.get()).plan).toBe("release");
  });

  it("[PL98] a join that was refused stays refused when it is repeated", async () => {
    const sandbox = await FakeSandbox.committed();
    const object = sandbox.berth.object(sandbox.id);
    const other = sandbox.asPlan(1, "other");
    expect(await object.joinPlan(other, 1)).toMatchObject({ refused: { code: "in_other_plan" } });
    await sandbox.leave();
    expect(await object.joinPlan(other, 1)).toMatchObject({ refused: { code: "stale_run" } });
    expect((await sandbox.api.get()).plan).toBeUndefined();
  });

  it("[PL65] another plan is refused, and another tenant or unknown sandbox learns nothing", async () => {
    const sandbox = await FakeSandbox.committed();
    const object = sandbox.berth.object(sandbox.id);
    const other = sandbox.asPlan(5, "other");
    expect(await object.joinPlan(other, 1)).toMatchObject({
      refused: { code: "in_other_plan", facts: { plan: "release" } },
    });
    expect(await object.holdForPlan(other, 0)).toMatchObject({ refused: { code: "stale_run" } });
    expect(await object.leavePlan(other, 2)).toEqual({ ok: null });
    expect((await sandbox.api.get()).plan).toBe("release");
    const foreign = sandbox.asPlan(5, "release", "other");
    const unknown = sandbox.berth.object("invented");
    for (const answer of [
      await object.joinPlan(foreign, 1),
      await object.leavePlan(foreign, 1),
      await object.holdForPlan(foreign, 0),
      await object.prepareForPlan(foreign, "commit"),
      await object.finishForPlan(foreign, "abort"),
      await unknown.joinPlan(sandbox.asPlan(1), 1),
      await unknown.finishForPlan(sandbox.asPlan(1), "abort"),
    ]) {
      expect(answer).toMatchObject({ refused: { code: "not_found" } });
    }
    expect(await unknown.leavePlan(sandbox.asPlan(1), 1)).toEqual({ ok: null });
    expect(await sandbox.remainingResources()).toMatchObject({
      committed: [expect.any(String)],
      lease: "free",
    });
  });

  it("[PL60] one that is destroyed at any step fails, and leaves nothing", async () => {
    const steps: ((sandbox: FakeSandbox) => unknown)[] = [
      (sandbox) => sandbox.hold(2),
      (sandbox) => sandbox.prepare(2),
    ];
    for (let upTo = 0; upTo <= steps.length; upTo++) {
      for (const verdict of ["commit", "abort", "roll_back"] as const) {
        const sandbox = await FakeSandbox.committed();
        for (const step of steps.slice(0, upTo)) await step(sandbox);
        await sandbox.api.destroy({ force: true });
        expect(await sandbox.hold(2)).toMatchObject({ code: "sandbox_destroyed" });
        expect(await sandbox.prepare(2)).toMatchObject({ code: "sandbox_destroyed" });
        expect(await sandbox.finish(2, verdict)).toMatchObject(destroyed);
        await sandbox.evict();
        expect(await sandbox.finish(2, verdict)).toMatchObject(destroyed);
        await soon(() => expect(sandbox.container.snapshots.size).toBe(0));
        expect(await sandbox.join(3)).toMatchObject({ code: "sandbox_destroyed" });
        expect(await sandbox.leave()).toBeNull();
      }
    }
  });

  it("[PL60] one that is destroyed during its snapshot ends its prepare at once", async () => {
    const sandbox = await FakeSandbox.committed();
    await sandbox.hold(2);
    const { preparing } = await sandbox.holdSnapshot(2);
    const ending = sandbox.api.destroy({ force: true });
    await soon(async () => expect((await sandbox.api.get()).state).toMatch(/^destroy/));
    sandbox.container.release();
    expect(await preparing).toMatchObject({ code: "sandbox_destroyed" });
    expect(await ending).toMatchObject({ state: "destroyed" });
    expect(await sandbox.finish(2, "abort")).toMatchObject(destroyed);
    await soon(() => expect(sandbox.container.snapshots.size).toBe(0));
  });

  it("[PL60] a commit before its end stays committed", async () => {
    const sandbox = await FakeSandbox.committed();
    await sandbox.api.destroy();
    expect(await sandbox.finish(1, "commit")).toEqual({ outcome: "committed" });
  });

  it("[PL68] a fresh instance removes what an earlier one had saved or leased without recording it", async () => {
    const sandbox = await FakeSandbox.committed();
    const before = await sandbox.remainingResources();
    await sandbox.hold(2);
    await sandbox.prepare(2);
    // As if the instance had been lost between the tree and the vote.
    sandbox.berth.rows(sandbox.id, "UPDATE seat SET phase = json_set(phase, '$.name', 'held')");
    await sandbox.evict();
    expect((await sandbox.remainingResources()).lease).toBe("held");
    await soon(() => expect(sandbox.container.snapshots.size).toBe(1));
    expect(await sandbox.finish(2, "abort")).toEqual({ outcome: "aborted" });
    expect(await sandbox.remainingResources()).toEqual(before);
    await sandbox.hold(3);
    sandbox.container.fault = { verb: "snapshot", hold: true };
    const cut = sandbox.prepare(3).catch(() => "cut");
    await soon(() => expect(sandbox.container.held.size).toBe(1));
    const next = sandbox.hold(4, 10_000).catch(() => "cut");
    await sandbox.untilWaiting(1);
    sandbox.crash();
    sandbox.container.release();
    expect(await cut).toBe("cut");
    expect(await sandbox.hold(4, 10_000)).toBeNull();
    expect(await sandbox.prepare(4)).toMatchObject({ yes: {} });
    expect(await sandbox.finish(4, "commit")).toEqual({ outcome: "committed" });
    await soon(async () =>
      expect(await sandbox.remainingResources()).toMatchObject({ trees: 1, lease: "free" }),
    );
    void next;
  });
});
