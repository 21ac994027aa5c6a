import { afterEach, describe, expect, it } from "vitest";
import { putMember, removeMember, removePlan } from "../../../src/objects/plan/members.ts";
import { limits } from "../../../src/protocol/limits.ts";
import { Desk, quiet, refusal } from "./harness.ts";

let desk: Desk;

/** The trees and commits of all boxes, to compare. */
const trees = () => [...desk.boxes.all.values()].map(({ files, committed }) => [files, committed]);
const gate = () => {
  let open = () => {};
  const closed = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { closed, open };
};

afterEach(async () => {
  desk.boxes.fault = () => undefined;
  await desk.rest();
  // Nothing is left: no run, no lease, no timer, no alarm.
  expect(desk.plan.record?.run).toBeNull();
  for (const box of desk.boxes.all.values()) expect(box.heldBy).toBeNull();
  expect([desk.timers, desk.alarmAt]).toEqual([0, undefined]);
});

describe("a commit", () => {
  it("[PL1] holds members one after the other in the order of their ids, saves few and finishes some at once", async () => {
    desk = new Desk();
    for (let n = 9; n >= 0; n--) await desk.adopt(`m${n}`, desk.boxes.make(`box${n}`).id);
    const { outcome, commit, members } = await desk.drive(desk.run());
    expect([outcome, commit]).toEqual(["committed", 1]);
    expect(
      members.map(({ outcome, checkpoint, changes }) => [
        outcome,
        checkpoint,
        changes?.counts.modified,
      ]),
    ).toEqual(Array.from({ length: 10 }, (_, n) => ["committed", `box${n}.1`, 1]));
    const holds = desk.boxes.asked.filter((call) => call.startsWith("hold"));
    expect(holds).toEqual(Array.from({ length: 10 }, (_, n) => `hold box${n} #1`));
    expect(desk.boxes.asked.indexOf("prepare box0 #1")).toBeGreaterThan(
      desk.boxes.asked.indexOf("hold box9 #1"),
    );
    expect(desk.boxes.most).toEqual({
      hold: 1,
      prepare: limits.planPrepareAtOnceMax,
      finish: limits.planFinishAtOnceMax,
    });
  });

  it("[PL2] commits the members that it has read: nobody comes, goes or is replaced until it is over", async () => {
    desk = await Desk.of(3);
    const other = desk.boxes.make("boxother").id;
    const { closed, open } = gate();
    desk.boxes.fault = (step) => (step === "prepare" ? { gate: closed } : undefined);
    const running = desk.run();
    await quiet();
    expect(desk.boxes.count("prepare")).toBe(3);
    const plan = desk.open();
    const tries = {
      add: () => putMember(plan, { key: "m3", sandbox: other }),
      replace: () => putMember(plan, { key: "m1", sandbox: other }),
      remove: () => removeMember(plan, "m1", "keep"),
      "remove all": () => removePlan(plan, desk.named, "keep"),
      "roll back": () => desk.run({ kind: "rollback" }),
      "commit in another way": () => desk.run({ mode: "best_effort" }),
    };
    for (const [what, move] of Object.entries(tries)) {
      expect(await refusal(move()), what).toMatchObject({ code: "plan_busy", commit: 1 });
    }
    // What changes nothing is answered.
    expect((await desk.put("m1", "box1", false)).sandbox).toBe("box1");
    open();
    const { members } = await desk.drive(running);
    expect(members.map(({ sandbox, outcome }) => [sandbox, outcome])).toEqual(
      ["box0", "box1", "box2"].map((id) => [id, "committed"]),
    );
    expect(trees().slice(0, 3)).toEqual([1, 2, 3].map(() => [1, 1]));
    expect(desk.boxes.of(other).plan).toBeNull();
    // And afterwards it is all possible again.
    desk.boxes.fault = () => undefined;
    expect(await desk.drive(desk.put("m1", other, false))).toMatchObject({ replaced: "box1" });
    await desk.rest();
    expect(desk.boxes.of("box1").plan).toBeNull();
  });

  it("[PL3] is joined by the same call: one run, one result, each member asked once", async () => {
    desk = await Desk.of(4);
    const all = await desk.drive(Promise.all(Array.from({ length: 20 }, () => desk.run())));
    expect(all[0]).toMatchObject({ commit: 1, outcome: "committed" });
    for (const one of all) expect(one).toEqual(all[0]);
    for (const step of ["hold", "prepare", "finish"] as const) {
      expect(desk.boxes.count(step), step).toBe(4);
    }
    for (const box of desk.boxes.all.values()) box.files++;
    expect((await desk.drive(desk.run())).commit).toBe(2);
  });

  it.each([0, 1, 2, 3, 4, 5, 6, 7])(
    "[PL4] whose member %i of 8 cannot leaves every member as it was; the next one is a new one",
    async (k) => {
      desk = await Desk.of(8);
      await desk.drive(desk.run());
      for (const box of desk.boxes.all.values()) box.files = 2;
      const before = trees();
      desk.boxes.fault = (step, id) =>
        step === "prepare" && id === `box${k}` ? { refuse: "disk_full" } : undefined;
      const { outcome, commit, members, error } = await desk.drive(desk.run());
      expect([outcome, commit, error?.code]).toEqual(["aborted", 2, "disk_full"]);
      expect(members.map((one) => one.outcome)).toEqual(before.map(() => "aborted"));
      expect(members[k]?.error?.code).toBe("disk_full");
      expect(trees()).toEqual(before);
      desk.boxes.fault = () => undefined;
      expect(await desk.drive(desk.run())).toMatchObject({ commit: 3, outcome: "committed" });
      expect(trees()).toEqual(before.map(() => [2, 2]));
    },
  );

  it("[PL5] in best effort commits those that can, and each says how it went", async () => {
    desk = await Desk.of(4);
    desk.boxes.fault = (step, id) => {
      if (step === "hold" && id === "box1") return { refuse: "lease_held" };
      return step === "prepare" && id === "box2" ? { refuse: "disk_full" } : undefined;
    };
    const { outcome, members } = await desk.drive(desk.run({ mode: "best_effort" }));
    expect(outcome).toBe("committed");
    expect(members.map(({ outcome, error }) => [outcome, error?.code])).toEqual([
      ["committed", undefined],
      ["aborted", "lease_held"],
      ["aborted", "disk_full"],
      ["committed", undefined],
    ]);
    expect(desk.plan.record?.members.map(({ committed }) => committed)).toEqual([1, null, null, 1]);
  });

  it("[PL6] of nothing is refused with its number, unless it may be empty", async () => {
    desk = await Desk.of(2);
    await desk.drive(desk.run());
    const refused = await desk.drive(refusal(desk.run()));
    expect(refused).toMatchObject({ code: "nothing_to_commit", commit: 2 });
    const empty = await desk.drive(desk.run({ allowEmpty: true }));
    expect(empty).toMatchObject({ commit: 3, outcome: "committed" });
    desk = new Desk("nobody's");
    const nobody = await refusal(desk.run());
    expect(nobody.code).toBe("nothing_to_commit");
    expect(nobody.message).toContain("no members");
  });

  it("[PL7] that a member does not let in is refused, naming the member and who holds it", async () => {
    desk = await Desk.of(3);
    const code = "lease_wait_timeout";
    desk.boxes.fault = (step, id) =>
      step === "hold" && id === "box1" ? { refuse: code, facts: { holder: "ci" } } : undefined;
    const { message, ...refused } = await desk.drive(refusal(desk.run()));
    expect(message).toContain("m1 was held by ci");
    expect(refused).toEqual({
      ...{ code: "lease_held", commit: 1, key: "m1", sandbox: "box1", holder: "ci" },
    });
    // Read again it is the same, of the run and of its member.
    desk.restart();
    const error = { code: "lease_held", message, holder: "ci" };
    const told = await desk.look(1, 0);
    expect(told).toMatchObject({ outcome: "aborted", error });
    expect(told.members.map((one) => one.error)).toMatchObject([undefined, error, undefined]);
    expect(desk.boxes.count("prepare")).toBe(0);
    expect(desk.boxes.count("finish")).toBe(3);
  });
});

describe("a rollback", () => {
  it("[PL8] brings all back to their last commit; where nobody was committed it is refused", async () => {
    desk = await Desk.of(3);
    const none = await desk.drive(refusal(desk.run({ kind: "rollback" })));
    expect(none).toMatchObject({ code: "nothing_to_roll_back", commit: 1 });
    await desk.drive(desk.run());
    for (const box of desk.boxes.all.values()) box.files = 9;
    const back = await desk.drive(desk.run({ kind: "rollback" }));
    expect(back).toMatchObject({ kind: "rollback", commit: 3, outcome: "rolled_back" });
    expect(back.members.map(({ checkpoint }) => checkpoint)).toEqual([
      "box0.1",
      "box1.1",
      "box2.1",
    ]);
    expect(trees()).toEqual([1, 2, 3].map(() => [1, 1]));
  });

  it("[PL8] is of all or of none: one that cannot leaves every member's work untouched", async () => {
    desk = await Desk.of(3);
    await desk.drive(desk.run());
    for (const box of desk.boxes.all.values()) box.files = 9;
    desk.boxes.fault = (step, id) =>
      step === "prepare" && id === "box2" ? { refuse: "checkpoint_expired" } : undefined;
    const { outcome } = await desk.drive(desk.run({ kind: "rollback" }));
    expect(outcome).toBe("aborted");
    expect(trees()).toEqual([1, 2, 3].map(() => [9, 1]));
  });
});

describe("a key", () => {
  it("[PL9] gives the same run again, is no good for another call, and lets one that was refused try again", async () => {
    desk = await Desk.of(2);
    const one = await desk.drive(desk.run({ key: "k" }));
    for (const box of desk.boxes.all.values()) box.files++;
    desk.restart();
    expect(await desk.drive(desk.run({ key: "k" }))).toEqual(one);
    expect(desk.boxes.count("finish")).toBe(2);
    expect(await refusal(desk.run({ key: "k", hash: "another" }))).toMatchObject({
      code: "idempotency_mismatch",
    });
    desk.boxes.fault = (step) => (step === "hold" ? { refuse: "lease_held" } : undefined);
    expect(await desk.drive(refusal(desk.run({ key: "later" })))).toMatchObject({ commit: 2 });
    desk.boxes.fault = () => undefined;
    const later = await desk.drive(desk.run({ key: "later" }));
    expect(later).toMatchObject({ commit: 3, outcome: "committed" });
    expect(await desk.drive(desk.run({ key: "later" }))).toEqual(later);
  });
});
