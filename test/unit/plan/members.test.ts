import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { putMember, putPlan, removeMember, removePlan } from "../../../src/objects/plan/members.ts";
import { limits } from "../../../src/protocol/limits.ts";
import { Desk, quiet, refusal } from "./harness.ts";

let desk: Desk;

beforeEach(() => {
  desk = new Desk();
});

afterEach(async () => {
  desk.boxes.fault = () => undefined;
  await desk.rest();
  const { run, joining, leaving } = desk.plan.record ?? {};
  expect([run ?? null, joining ?? [], leaving ?? []]).toEqual([null, [], []]);
  await passRefusals();
  expect([desk.timers, desk.alarmAt]).toEqual([0, undefined]);
});

/** What is remembered for those who wait is forgotten with its time. */
async function passRefusals(): Promise<void> {
  while (await desk.next()) await quiet();
}

const members = () => (desk.plan.record?.members ?? []).map(({ key, sandbox }) => [key, sandbox]);
const made = (id: string) => desk.boxes.all.has(id);

describe("a member", () => {
  it("[PL20] is made once for its key, whoever asks at once; asked again it is found, also during a run", async () => {
    const all = await desk.drive(
      Promise.all(Array.from({ length: 10 }, (_, n) => desk.put("web", `new${n}`))),
    );
    expect(new Set(all.map(({ sandbox }) => sandbox))).toEqual(new Set(["new0"]));
    expect(desk.boxes.count("make")).toBe(1);
    expect([...desk.boxes.all.keys()]).toEqual(["new0"]);
    expect((await desk.drive(desk.put("web", "new10"))).sandbox).toBe("new0");
    expect(made("new10")).toBe(false);
    expect(desk.boxes.of("new0").plan).toBe("plan");
  });

  it("[PL21] is one of its plan only, and under one key: who is another's is left there", async () => {
    await desk.adopt("a", desk.boxes.make("box").id);
    expect(await refusal(desk.put("b", "box", false))).toMatchObject({
      code: "in_other_plan",
      plan: "plan",
      key: "a",
    });
    desk.boxes.make("theirs").plan = "another";
    expect(await desk.drive(refusal(desk.put("c", "theirs", false)))).toMatchObject({
      code: "in_other_plan",
      plan: "another",
    });
    expect(members()).toEqual([["a", "box"]]);
    expect(desk.boxes.of("theirs")).toMatchObject({ plan: "another", ended: false });
  });

  it("[PL22] that takes a place is in before the one before it is out; if it cannot, nothing has changed", async () => {
    await desk.adopt("a", desk.boxes.make("old").id);
    desk.boxes.make("dead").ended = true;
    const refused = await desk.drive(refusal(desk.put("a", "dead", false)));
    expect(refused.code).toBe("sandbox_destroyed");
    expect(members()).toEqual([["a", "old"]]);
    expect(desk.boxes.count("leave")).toBe(0);
    desk.boxes.make("young");
    const put = await desk.drive(desk.put("a", "young", false));
    expect(put).toMatchObject({ sandbox: "young", replaced: "old" });
    await desk.rest();
    const { asked } = desk.boxes;
    expect(asked.indexOf("leave old #0")).toBeGreaterThan(asked.indexOf("join young #0"));
    expect([desk.boxes.of("old").plan, desk.boxes.of("young").plan]).toEqual([null, "plan"]);
    // It was only let go.
    expect(desk.boxes.of("old").ended).toBe(false);
  });

  it("[PL23] that was made and cannot join is ended, unless another plan has taken it", async () => {
    desk.boxes.fault = (step) => (step === "join" ? { refuse: "sandbox_destroyed" } : undefined);
    expect(await desk.drive(refusal(desk.put("a", "new0")))).toMatchObject({
      code: "sandbox_destroyed",
    });
    await desk.rest();
    expect(desk.boxes.of("new0").ended).toBe(true);
    desk.boxes.fault = (step) => (step === "join" ? { refuse: "in_other_plan" } : undefined);
    expect(await desk.drive(refusal(desk.put("a", "new1")))).toMatchObject({
      code: "in_other_plan",
    });
    await desk.rest();
    expect(desk.boxes.of("new1").ended).toBe(false);
    desk.boxes.fault = (step) => (step === "make" ? { refuse: "unsupported" } : undefined);
    expect(await desk.drive(refusal(desk.put("a", "new2")))).toMatchObject({ code: "unsupported" });
    await desk.rest();
    expect([made("new2"), desk.boxes.count("end", "new2"), members()]).toEqual([false, 0, []]);
  });

  it.each([
    ["make", "fails"],
    ["make", "fails afterwards"],
    ["join", "fails"],
    ["join", "fails afterwards"],
    ["join", "silent"],
  ] as const)(
    "[PL24] of whose %s nobody knows (%s) is asked again until it is in, also after a stop",
    async (step, way) => {
      desk.boxes.fault = (at) => (at === step ? way : undefined);
      const put = refusal(desk.put("a", "new0"));
      expect(await desk.drive(put)).toMatchObject({ code: "unavailable" });
      desk.restart();
      expect(desk.plan.record?.joining).toHaveLength(1);
      desk.boxes.fault = () => undefined;
      await desk.rest();
      expect(members()).toEqual([["a", "new0"]]);
      expect(desk.boxes.all.size).toBe(1);
      expect((await desk.put("a", "new1")).sandbox).toBe("new0");
    },
  );

  it.each(["make", "join"] as const)(
    "[PL144] whose %s is refused for what passes is in as soon as it has passed, and given up where it does not",
    async (step) => {
      let refused = 0;
      desk.boxes.fault = (at) =>
        at === step && ++refused <= 2 ? { refuse: "too_many" } : undefined;
      expect((await desk.drive(desk.put("a", "new0"))).sandbox).toBe("new0");
      desk.boxes.fault = (at) => (at === step ? { refuse: "too_many" } : undefined);
      expect(await desk.drive(refusal(desk.put("b", "new1")))).toMatchObject({
        code: "unavailable",
      });
      await desk.rest();
      expect(desk.plan.record?.joining).toEqual([]);
      expect(members()).toEqual([["a", "new0"]]);
      expect(made("new1") && !desk.boxes.of("new1").ended).toBe(false);
      desk.boxes.fault = (at) => {
        if (at !== step) return undefined;
        return desk.boxes.count(step, "new2") <= 1 ? "fails afterwards" : { refuse: "too_many" };
      };
      expect(await desk.drive(refusal(desk.put("b", "new2")))).toMatchObject({
        code: "unavailable",
      });
      await desk.rest();
      expect([made("new2"), desk.boxes.of("new2").ended]).toEqual([true, true]);
      await desk.drive(removePlan(desk.plan, desk.named, "keep"));
    },
  );

  it("[PL25] on its way in or out is waited for by a run, as long as the run has patience", async () => {
    await desk.adopt("a", desk.boxes.make("box").id);
    let open = () => {};
    const closed = new Promise<void>((resolve) => {
      open = resolve;
    });
    desk.boxes.fault = (step) => (step === "join" ? { gate: closed } : undefined);
    const put = desk.put("b", "new0");
    await quiet();
    expect(await refusal(desk.run({ waitMs: 0 }))).toMatchObject({ code: "unavailable" });
    const patient = desk.run({ waitMs: 5_000 });
    await quiet();
    open();
    await desk.drive(put);
    const { members: told } = await desk.drive(patient);
    expect(told.map(({ key, outcome }) => [key, outcome])).toEqual([
      ["a", "committed"],
      ["b", "committed"],
    ]);
  });

  it("[PL26] is taken out and kept, or destroyed; then its key is free, and the sandbox may go to another plan", async () => {
    await desk.adopt("a", desk.boxes.make("kept").id);
    await desk.adopt("b", desk.boxes.make("gone").id);
    const out = await desk.drive(removeMember(desk.open(), "a", "keep"));
    expect(out).toMatchObject({ key: "a", sandbox: "kept" });
    await desk.drive(removeMember(desk.open(), "b", "destroy"));
    expect(desk.boxes.of("kept")).toMatchObject({ plan: null, ended: false });
    expect(desk.boxes.of("gone")).toMatchObject({ plan: null, ended: true });
    expect(members()).toEqual([]);
    const again = refusal(removeMember(desk.open(), "a", "keep"));
    expect(await again).toMatchObject({ code: "not_found" });
  });

  it("[PL26] that cannot be told is out all the same, and told until it has heard", async () => {
    await desk.adopt("a", desk.boxes.make("box").id);
    desk.boxes.fault = (step) => (step === "leave" ? "fails" : undefined);
    const out = refusal(removeMember(desk.open(), "a", "destroy"));
    expect(await desk.drive(out)).toMatchObject({ code: "unavailable" });
    expect(members()).toEqual([]);
    desk.restart();
    desk.boxes.fault = () => undefined;
    await desk.rest();
    expect(desk.boxes.of("box")).toMatchObject({ plan: null, ended: true });
  });

  it("[PL27] too many are refused", async () => {
    for (let n = 0; n < limits.planMembersMax; n++) {
      await desk.adopt(`m${n}`, desk.boxes.make(`box${n}`).id);
    }
    desk.boxes.make("more");
    expect(await refusal(desk.put("more", "more", false))).toMatchObject({
      code: "too_many",
      planMembersMax: limits.planMembersMax,
    });
    const { outcome, members } = await desk.drive(desk.run());
    expect(outcome).toBe("committed");
    expect(members).toHaveLength(limits.planMembersMax);
  });

  it("[PL28] cannot be made of what is gone, but one that was made of it is found", async () => {
    const cannot = { code: "checkpoint_expired" as const, message: "gone", facts: {} };
    const call = { spec: { id: "new1" }, metadata: {}, start: true };
    const put = () =>
      putMember(desk.open(), {
        key: "a",
        sandbox: "new1",
        make: call as never,
        createRefusal: cannot,
      });
    expect(await refusal(put())).toMatchObject({ code: "checkpoint_expired" });
    expect(desk.plan.record?.joining).toEqual([]);
    await desk.drive(desk.put("a", "new0"));
    expect(await put()).toMatchObject({ made: false, member: { sandbox: "new0" } });
  });
});

describe("a plan", () => {
  it("[PL29] that is removed lets its members go, then its name; one of the same name counts on", async () => {
    await desk.adopt("a", desk.boxes.make("box").id);
    await desk.drive(desk.run({ key: "k" }));
    desk.boxes.names = [["plan", desk.named.createdAt]];
    const was = await desk.drive(removePlan(desk.plan, desk.named, "keep"));
    expect(was.members).toMatchObject([{ key: "a", sandbox: "box" }]);
    const { asked } = desk.boxes;
    expect(asked.indexOf("forget plan")).toBeGreaterThan(asked.indexOf("leave box #1"));
    expect(desk.boxes.names).toEqual([]);
    expect(desk.boxes.of("box")).toMatchObject({ plan: null, ended: false });
    expect(await refusal(Promise.resolve().then(() => desk.run()))).toMatchObject({
      code: "not_found",
    });
    // By the name as it was given before it was given back: it has to be given anew.
    expect(await putPlan(desk.plan, desk.named)).toBe("again");
    const later = { ...desk.named, createdAt: desk.named.createdAt + 1 };
    expect(await putPlan(desk.plan, later)).toMatchObject({ name: "plan", members: [] });
    expect(desk.plan.record).toMatchObject({ newestRun: 1, lastRun: null });
    Object.assign(desk.named, later);
    await desk.adopt("b", "box");
    desk.boxes.of("box").files++;
    expect(await desk.drive(desk.run({ key: "k" }))).toMatchObject({ commit: 2 });
    const pages = desk.page(undefined, 10);
    expect(pages.commits.map(({ commit }) => commit)).toEqual([2]);
  });

  it("[PL30] is removed to the end by whatever way it is stopped, and a repeated call waits for the same end", async () => {
    await desk.adopt("a", desk.boxes.make("box").id);
    desk.boxes.names = [["plan", desk.named.createdAt]];
    desk.boxes.fault = (step) => (step === "leave" ? "silent" : undefined);
    const first = refusal(removePlan(desk.plan, desk.named, "destroy"));
    expect(await desk.drive(first)).toMatchObject({ code: "unavailable" });
    expect(desk.boxes.names).toHaveLength(1);
    desk.restart();
    desk.boxes.fault = () => undefined;
    await desk.drive(removePlan(desk.plan, desk.named, "destroy"));
    await desk.rest();
    expect(desk.boxes.of("box").ended).toBe(true);
    expect(desk.boxes.names).toEqual([]);
    const gone = refusal(removePlan(desk.plan, desk.named, "destroy"));
    expect(await gone).toMatchObject({ code: "not_found" });
  });

  it("[PL31] that was only looked for has no rows, and one at rest no alarm and nothing to write", async () => {
    expect(desk.plan.record).toBeUndefined();
    await desk.plan.alarm();
    expect(desk.writes).toBe(0);
    await desk.adopt("a", desk.boxes.make("box").id);
    await desk.drive(desk.run());
    await desk.rest();
    desk.restart();
    const { writes } = desk;
    desk.open();
    await desk.look(1, 0);
    desk.page(undefined, 10);
    await desk.put("a", "box", false);
    expect([desk.writes, desk.alarmAt]).toEqual([writes, undefined]);
  });
});
