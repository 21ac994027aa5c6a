import { afterEach, describe, expect, it } from "vitest";
import { putMember, removeMember, removePlan } from "../../../src/objects/plan/members.ts";
import { limits } from "../../../src/protocol/limits.ts";
import { PlanHarness, refusal, settle } from "./harness.ts";

let harness: PlanHarness;

/** The files and commits of all sandboxes, for comparison. */
const trees = () => harness.boxes().map(({ files, committed }) => [files, committed]);

afterEach(() => harness.expectNothingLeft());

describe("a commit", () => {
  it("[PL1] holds members one after the other by id, and prepares and finishes a limited number at once", async () => {
    harness = new PlanHarness();
    for (let n = 9; n >= 0; n--) await harness.adopt(`m${n}`, harness.sandboxes.make(`box${n}`).id);
    const { outcome, commit, members } = await harness.drive(harness.run());
    expect([outcome, commit]).toEqual(["committed", 1]);
    expect(
      members.map(({ outcome, checkpoint, changes }) => [
        outcome,
        checkpoint,
        changes?.counts.modified,
      ]),
    ).toEqual(Array.from({ length: 10 }, (_, n) => ["committed", `box${n}.1`, 1]));
    const holds = harness.sandboxes.calls.filter((call) => call.startsWith("hold"));
    expect(holds).toEqual(Array.from({ length: 10 }, (_, n) => `hold box${n} #1`));
    expect(harness.sandboxes.calls.indexOf("prepare box0 #1")).toBeGreaterThan(
      harness.sandboxes.calls.indexOf("hold box9 #1"),
    );
    expect(harness.sandboxes.mostRunning).toEqual({
      hold: 1,
      prepare: limits.planPreparesMax,
      finish: limits.planFinishesMax,
    });
  });

  it("[PL2] commits the members that it has read: nobody joins, leaves or is replaced until it ends", async () => {
    harness = await PlanHarness.withMembers(3);
    const other = harness.sandboxes.make("boxother").id;
    const { promise: closed, resolve: open } = Promise.withResolvers<void>();
    harness.sandboxes.failAt("prepare", { gate: closed });
    const running = harness.run();
    await settle();
    expect(harness.sandboxes.count("prepare")).toBe(3);
    const plan = harness.open();
    const tries = {
      add: () => putMember(plan, { key: "m3", sandbox: other }),
      replace: () => putMember(plan, { key: "m1", sandbox: other }),
      remove: () => removeMember(plan, "m1", "keep"),
      "remove all": () => removePlan(plan, harness.identity, "keep"),
      "roll back": () => harness.run({ kind: "rollback" }),
      "commit in another way": () => harness.run({ mode: "best_effort" }),
    };
    for (const [what, move] of Object.entries(tries)) {
      expect(await refusal(move()), what).toMatchObject({ code: "plan_busy", commit: 1 });
    }
    // Calls that change nothing succeed.
    expect((await harness.put("m1", "box1", false)).sandbox).toBe("box1");
    open();
    const { members } = await harness.drive(running);
    expect(members.map(({ sandbox, outcome }) => [sandbox, outcome])).toEqual(
      ["box0", "box1", "box2"].map((id) => [id, "committed"]),
    );
    expect(trees().slice(0, 3)).toEqual([1, 2, 3].map(() => [1, 1]));
    expect(harness.sandboxes.get(other).plan).toBeNull();
    // Afterwards all of it is possible again.
    harness.sandboxes.fault = () => undefined;
    expect(await harness.drive(harness.put("m1", other, false))).toMatchObject({
      replaced: "box1",
    });
    await harness.settleAll();
    expect(harness.sandboxes.get("box1").plan).toBeNull();
  });

  it("[PL3] is joined by the same call: one run, one result, one request for each member", async () => {
    harness = await PlanHarness.withMembers(4);
    const all = await harness.drive(Promise.all(Array.from({ length: 20 }, () => harness.run())));
    expect(all[0]).toMatchObject({ commit: 1, outcome: "committed" });
    for (const result of all) expect(result).toEqual(all[0]);
    for (const step of ["hold", "prepare", "finish"] as const) {
      expect(harness.sandboxes.count(step), step).toBe(4);
    }
    for (const box of harness.boxes()) box.files++;
    expect((await harness.drive(harness.run())).commit).toBe(2);
  });

  it.each([0, 1, 2, 3, 4, 5, 6, 7])(
    "[PL4] leaves every member unchanged if member %i of 8 fails; the next commit is a new run",
    async (k) => {
      harness = await PlanHarness.withMembers(8);
      await harness.drive(harness.run());
      for (const box of harness.boxes()) box.files = 2;
      const before = trees();
      harness.sandboxes.failAt("prepare", { refuse: "disk_full" }, `box${k}`);
      const { outcome, commit, members, error } = await harness.drive(harness.run());
      expect([outcome, commit, error?.code]).toEqual(["aborted", 2, "disk_full"]);
      expect(members.map((result) => result.outcome)).toEqual(before.map(() => "aborted"));
      expect(members[k]?.error?.code).toBe("disk_full");
      expect(trees()).toEqual(before);
      harness.sandboxes.fault = () => undefined;
      expect(await harness.drive(harness.run())).toMatchObject({ commit: 3, outcome: "committed" });
      expect(trees()).toEqual(before.map(() => [2, 2]));
    },
  );

  it("[PL5] in best effort commits those that can, with a result for each", async () => {
    harness = await PlanHarness.withMembers(4);
    harness.sandboxes.fault = (step, id) => {
      if (step === "hold" && id === "box1") return { refuse: "lease_held" };
      return step === "prepare" && id === "box2" ? { refuse: "disk_full" } : undefined;
    };
    const { outcome, members } = await harness.drive(harness.run({ mode: "best_effort" }));
    expect(outcome).toBe("committed");
    expect(members.map(({ outcome, error }) => [outcome, error?.code])).toEqual([
      ["committed", undefined],
      ["aborted", "lease_held"],
      ["aborted", "disk_full"],
      ["committed", undefined],
    ]);
    expect(harness.plan.record?.members.map(({ committed }) => committed)).toEqual([
      1,
      null,
      null,
      1,
    ]);
  });

  it("[PL6] without changes is refused with its number, unless it may be empty", async () => {
    harness = await PlanHarness.withMembers(2);
    await harness.drive(harness.run());
    const refused = await harness.refusal(harness.run());
    expect(refused).toMatchObject({ code: "nothing_to_commit", commit: 2 });
    const empty = await harness.drive(harness.run({ allowEmpty: true }));
    expect(empty).toMatchObject({ commit: 3, outcome: "committed" });
    harness = new PlanHarness("nobody's");
    const nobody = await refusal(harness.run());
    expect(nobody.code).toBe("nothing_to_commit");
    expect(nobody.message).toContain("no members");
  });

  it("[PL7] that cannot get a member's lease is refused, naming the member and the holder", async () => {
    harness = await PlanHarness.withMembers(3);
    const code = "lease_wait_timeout";
    harness.sandboxes.fault = (step, id) =>
      step === "hold" && id === "box1" ? { refuse: code, facts: { holder: "ci" } } : undefined;
    const { message, ...refused } = await harness.refusal(harness.run());
    expect(message).toContain("m1 was held by ci");
    expect(refused).toEqual({
      ...{ code: "lease_held", commit: 1, key: "m1", sandbox: "box1", holder: "ci" },
    });
    // Reading the run and its member again gives the same.
    harness.restart();
    const error = { code: "lease_held", message, holder: "ci" };
    const result = await harness.waitForRun(1, 0);
    expect(result).toMatchObject({ outcome: "aborted", error });
    expect(result.members.map((result) => result.error)).toMatchObject([
      undefined,
      error,
      undefined,
    ]);
    expect(harness.sandboxes.count("prepare")).toBe(0);
    expect(harness.sandboxes.count("finish")).toBe(3);
  });
});

describe("a rollback", () => {
  it("[PL8] returns all members to their last commit, and is refused if there is none", async () => {
    harness = await PlanHarness.withMembers(3);
    const none = await harness.refusal(harness.run({ kind: "rollback" }));
    expect(none).toMatchObject({ code: "nothing_to_roll_back", commit: 1 });
    await harness.drive(harness.run());
    for (const box of harness.boxes()) box.files = 9;
    const back = await harness.drive(harness.run({ kind: "rollback" }));
    expect(back).toMatchObject({ kind: "rollback", commit: 3, outcome: "rolled_back" });
    expect(back.members.map(({ checkpoint }) => checkpoint)).toEqual([
      "box0.1",
      "box1.1",
      "box2.1",
    ]);
    expect(trees()).toEqual([1, 2, 3].map(() => [1, 1]));
  });

  it("[PL8] is atomic: a member that fails leaves every member's work untouched", async () => {
    harness = await PlanHarness.withMembers(3);
    await harness.drive(harness.run());
    for (const box of harness.boxes()) box.files = 9;
    harness.sandboxes.failAt("prepare", { refuse: "checkpoint_expired" }, "box2");
    const { outcome } = await harness.drive(harness.run({ kind: "rollback" }));
    expect(outcome).toBe("aborted");
    expect(trees()).toEqual([1, 2, 3].map(() => [9, 1]));
  });
});

describe("a key", () => {
  it("[PL9] gives the same run again, is refused for a different call, and lets a refused call try again", async () => {
    harness = await PlanHarness.withMembers(2);
    const result = await harness.drive(harness.run({ key: "k" }));
    for (const box of harness.boxes()) box.files++;
    harness.restart();
    expect(await harness.drive(harness.run({ key: "k" }))).toEqual(result);
    expect(harness.sandboxes.count("finish")).toBe(2);
    expect(await refusal(harness.run({ key: "k", hash: "another" }))).toMatchObject({
      code: "idempotency_mismatch",
    });
    harness.sandboxes.failAt("hold", { refuse: "lease_held" });
    expect(await harness.refusal(harness.run({ key: "later" }))).toMatchObject({ commit: 2 });
    harness.sandboxes.fault = () => undefined;
    const later = await harness.drive(harness.run({ key: "later" }));
    expect(later).toMatchObject({ commit: 3, outcome: "committed" });
    expect(await harness.drive(harness.run({ key: "later" }))).toEqual(later);
  });
});
