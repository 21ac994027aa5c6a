import { afterEach, describe, expect, it } from "vitest";
import { limits } from "../../../src/protocol/limits.ts";
import { PlanHarness, refusal, settle } from "./harness.ts";

let harness: PlanHarness;

afterEach(() => harness.expectNothingLeft());

describe("a full plan", () => {
  it("[PL130] accepts a replacement of a member, and no further member", async () => {
    harness = await PlanHarness.withMembers(limits.planMembersMax);
    harness.sandboxes.make("other");
    const member = await harness.drive(harness.put("m7", "other", false));
    expect(member).toMatchObject({ sandbox: "other", replaced: "box7" });
    expect(harness.plan.record?.members).toHaveLength(limits.planMembersMax);
    await harness.settleAll();
    expect(harness.sandboxes.get("box7").plan).toBeNull();
    expect(await refusal(harness.put("more", "new"))).toMatchObject({ code: "too_many" });
    expect(harness.sandboxes.all.has("new")).toBe(false);
  });
});

describe("a commit in best effort", () => {
  it.each(["disk_full", "lease_held"] as const)(
    "[PL131] reports why a member failed (%s) if the others have not changed, and not that nothing changed",
    async (code) => {
      harness = await PlanHarness.withMembers(2);
      await harness.drive(harness.run());
      harness.sandboxes.get("box1").files = 2;
      const step = code === "disk_full" ? "prepare" : "hold";
      harness.sandboxes.failAt(step, { refuse: code }, "box1");
      const run = harness.drive(harness.run({ mode: "best_effort" }));
      if (code === "lease_held") {
        expect(await refusal(run)).toMatchObject({ code, key: "m1" });
      } else {
        expect(await run).toMatchObject({ outcome: "aborted", error: { code } });
      }
      expect(harness.boxes().map(({ committed }) => committed)).toEqual([1, 1]);
    },
  );
});

describe("a run that is decided", () => {
  it.each(["commit", "rollback"] as const)(
    "[PL132] is not joined: a later %s includes what changed in members that were already released",
    async (kind) => {
      harness = await PlanHarness.withMembers(2);
      await harness.drive(harness.run());
      for (const box of harness.boxes()) box.files = 2;
      const { promise: closed, resolve: open } = Promise.withResolvers<void>();
      harness.sandboxes.failAt("finish", { gate: closed }, "box1");
      const first = harness.run({ kind });
      first.catch(() => undefined);
      await settle();
      const [free, held] = harness.boxes();
      expect([free?.heldBy, held?.heldBy]).toEqual([null, 2]);
      harness.sandboxes.get("box0").files = 3;
      const now = harness.refusal(harness.run({ kind, waitMs: 0 }));
      expect(await now).toMatchObject({ code: "plan_busy", commit: 2 });
      const later = harness.run({ kind, waitMs: 25_000 });
      later.catch(() => undefined);
      await settle();
      open();
      expect(await harness.drive(first)).toMatchObject({ commit: 2 });
      expect(await harness.drive(later)).toMatchObject({ commit: 3 });
      expect(harness.boxes().map(({ files, committed }) => [files, committed])).toEqual(
        kind === "commit"
          ? [
              [3, 3],
              [2, 2],
            ]
          : [
              [1, 1],
              [1, 1],
            ],
      );
    },
  );
});

describe("a destroyed member", () => {
  it("[PL133] is replaced by the call that creates one for its key, even by concurrent calls; a living one is found", async () => {
    harness = await PlanHarness.withMembers(2);
    await harness.drive(harness.run());
    expect(await harness.drive(harness.put("m0", "new0"))).toMatchObject({ sandbox: "box0" });
    harness.sandboxes.get("box0").ended = true;
    const all = [harness.put("m0", "new1"), harness.put("m0", "new2"), harness.put("m0", "new3")];
    const put = await harness.drive(Promise.all(all));
    expect(new Set(put.map(({ sandbox }) => sandbox))).toEqual(new Set(["new1"]));
    expect(put[0]?.replaced).toBe("box0");
    expect(harness.sandboxes.count("make")).toBe(1);
    await harness.settleAll();
    expect(harness.plan.record?.members.map(({ sandbox }) => sandbox).sort()).toEqual([
      "box1",
      "new1",
    ]);
    expect(await harness.drive(harness.run({ allowEmpty: true }))).toMatchObject({
      outcome: "committed",
      members: [{ sandbox: "new1" }, { sandbox: "box1" }],
    });
  });

  it("[PL133] stays while a run is open, and while it is unknown whether it was destroyed", async () => {
    harness = await PlanHarness.withMembers(1);
    harness.sandboxes.get("box0").ended = true;
    const { promise: closed, resolve: open } = Promise.withResolvers<void>();
    harness.sandboxes.failAt("prepare", { gate: closed });
    const run = harness.run();
    await settle();
    expect((await harness.put("m0", "new")).sandbox).toBe("box0");
    open();
    await harness.drive(run);
    harness.sandboxes.all.delete("new");
    harness.sandboxes.isAway = true;
    expect((await harness.drive(harness.put("m0", "new"))).sandbox).toBe("box0");
    expect(harness.sandboxes.count("make")).toBe(0);
  });
});
