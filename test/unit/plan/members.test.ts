import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { putMember, putPlan, removeMember, removePlan } from "../../../src/objects/plan/members.ts";
import { limits } from "../../../src/protocol/limits.ts";
import { PlanHarness, refusal, settle } from "./harness.ts";

let harness: PlanHarness;

beforeEach(() => {
  harness = new PlanHarness();
});

afterEach(() => harness.expectNothingLeft());

const members = () =>
  (harness.plan.record?.members ?? []).map(({ key, sandbox }) => [key, sandbox]);
const made = (id: string) => harness.sandboxes.all.has(id);

describe("a member", () => {
  it("[PL20] is created once for its key, even by concurrent calls; a repeated call finds it, also during a run", async () => {
    const all = await harness.drive(
      Promise.all(Array.from({ length: 10 }, (_, n) => harness.put("web", `new${n}`))),
    );
    expect(new Set(all.map(({ sandbox }) => sandbox))).toEqual(new Set(["new0"]));
    expect(harness.sandboxes.count("make")).toBe(1);
    expect([...harness.sandboxes.all.keys()]).toEqual(["new0"]);
    expect((await harness.drive(harness.put("web", "new10"))).sandbox).toBe("new0");
    expect(made("new10")).toBe(false);
    expect(harness.sandboxes.get("new0").plan).toBe("plan");
  });

  it("[PL21] belongs to one plan and one key only: a member of another plan stays there", async () => {
    await harness.adopt("a", harness.sandboxes.make("box").id);
    expect(await refusal(harness.put("b", "box", false))).toMatchObject({
      code: "in_other_plan",
      plan: "plan",
      key: "a",
    });
    harness.sandboxes.make("theirs").plan = "another";
    expect(await harness.refusal(harness.put("c", "theirs", false))).toMatchObject({
      code: "in_other_plan",
      plan: "another",
    });
    expect(members()).toEqual([["a", "box"]]);
    expect(harness.sandboxes.get("theirs")).toMatchObject({ plan: "another", ended: false });
  });

  it("[PL22] that replaces another joins before the other leaves; if it cannot join, nothing changes", async () => {
    await harness.adopt("a", harness.sandboxes.make("old").id);
    harness.sandboxes.make("dead").ended = true;
    const refused = await harness.refusal(harness.put("a", "dead", false));
    expect(refused.code).toBe("sandbox_destroyed");
    expect(members()).toEqual([["a", "old"]]);
    expect(harness.sandboxes.count("leave")).toBe(0);
    harness.sandboxes.make("young");
    const put = await harness.drive(harness.put("a", "young", false));
    expect(put).toMatchObject({ sandbox: "young", replaced: "old" });
    await harness.settleAll();
    const { calls: asked } = harness.sandboxes;
    expect(asked.indexOf("leave old #0")).toBeGreaterThan(asked.indexOf("join young #0"));
    expect([harness.sandboxes.get("old").plan, harness.sandboxes.get("young").plan]).toEqual([
      null,
      "plan",
    ]);
    // It was only removed from the plan.
    expect(harness.sandboxes.get("old").ended).toBe(false);
  });

  it.each([
    ["join", "sandbox_destroyed", true],
    ["join", "in_other_plan", false],
    ["make", "unsupported", undefined],
  ] as const)(
    "[PL23] that was created but cannot join is ended, unless it is in another plan (%s: %s)",
    async (step, code, isEnded) => {
      harness.sandboxes.failAt(step, { refuse: code });
      expect(await harness.refusal(harness.put("a", "new0"))).toMatchObject({ code });
      await harness.settleAll();
      expect(harness.sandboxes.all.get("new0")?.ended).toBe(isEnded);
      expect(harness.sandboxes.count("end", "new0")).toBe(isEnded === true ? 1 : 0);
      expect(members()).toEqual([]);
    },
  );

  it.each([
    ["make", "fails"],
    ["make", "fails afterwards"],
    ["join", "fails"],
    ["join", "fails afterwards"],
    ["join", "silent"],
  ] as const)(
    "[PL24] whose %s has an unknown outcome (%s) gets the request again until it has joined, also after a restart",
    async (step, way) => {
      harness.sandboxes.failAt(step, way);
      const put = refusal(harness.put("a", "new0"));
      expect(await harness.drive(put)).toMatchObject({ code: "unavailable" });
      harness.restart();
      expect(harness.plan.record?.joining).toHaveLength(1);
      harness.sandboxes.fault = () => undefined;
      await harness.settleAll();
      expect(members()).toEqual([["a", "new0"]]);
      expect(harness.sandboxes.all.size).toBe(1);
      expect((await harness.put("a", "new1")).sandbox).toBe("new0");
    },
  );

  it.each(["make", "join"] as const)(
    "[PL144] whose %s is refused for a temporary reason joins as soon as that is over, and is given up if it is not",
    async (step) => {
      let refused = 0;
      harness.sandboxes.fault = (called) =>
        called === step && ++refused <= 2 ? { refuse: "too_many" } : undefined;
      expect((await harness.drive(harness.put("a", "new0"))).sandbox).toBe("new0");
      harness.sandboxes.failAt(step, { refuse: "too_many" });
      expect(await harness.refusal(harness.put("b", "new1"))).toMatchObject({
        code: "unavailable",
      });
      await harness.settleAll();
      expect(harness.plan.record?.joining).toEqual([]);
      expect(members()).toEqual([["a", "new0"]]);
      expect(made("new1") && !harness.sandboxes.get("new1").ended).toBe(false);
      harness.sandboxes.fault = (called) => {
        if (called !== step) return undefined;
        return harness.sandboxes.count(step, "new2") <= 1
          ? "fails afterwards"
          : { refuse: "too_many" };
      };
      expect(await harness.refusal(harness.put("b", "new2"))).toMatchObject({
        code: "unavailable",
      });
      await harness.settleAll();
      expect([made("new2"), harness.sandboxes.get("new2").ended]).toEqual([true, true]);
      await harness.drive(removePlan(harness.plan, harness.identity, "keep"));
    },
  );

  it("[PL25] that joins or leaves delays a run, at most for the run's `waitMs`", async () => {
    await harness.adopt("a", harness.sandboxes.make("box").id);
    const { promise: closed, resolve: open } = Promise.withResolvers<void>();
    harness.sandboxes.failAt("join", { gate: closed });
    const put = harness.put("b", "new0");
    await settle();
    expect(await refusal(harness.run({ waitMs: 0 }))).toMatchObject({ code: "unavailable" });
    const patient = harness.run({ waitMs: 5_000 });
    await settle();
    open();
    await harness.drive(put);
    const { members } = await harness.drive(patient);
    expect(members.map(({ key, outcome }) => [key, outcome])).toEqual([
      ["a", "committed"],
      ["b", "committed"],
    ]);
  });

  it("[PL26] is removed and kept, or destroyed; then its key is free, and the sandbox may join another plan", async () => {
    await harness.adopt("a", harness.sandboxes.make("kept").id);
    await harness.adopt("b", harness.sandboxes.make("gone").id);
    const out = await harness.drive(removeMember(harness.open(), "a", "keep"));
    expect(out).toMatchObject({ key: "a", sandbox: "kept" });
    await harness.drive(removeMember(harness.open(), "b", "destroy"));
    expect(harness.sandboxes.get("kept")).toMatchObject({ plan: null, ended: false });
    expect(harness.sandboxes.get("gone")).toMatchObject({ plan: null, ended: true });
    expect(members()).toEqual([]);
    const repeated = refusal(removeMember(harness.open(), "a", "keep"));
    expect(await repeated).toMatchObject({ code: "not_found" });
  });

  it("[PL26] that does not respond is removed nevertheless, and gets the request until it has confirmed", async () => {
    await harness.adopt("a", harness.sandboxes.make("box").id);
    harness.sandboxes.failAt("leave", "fails");
    const out = refusal(removeMember(harness.open(), "a", "destroy"));
    expect(await harness.drive(out)).toMatchObject({ code: "unavailable" });
    expect(members()).toEqual([]);
    harness.restart();
    harness.sandboxes.fault = () => undefined;
    await harness.settleAll();
    expect(harness.sandboxes.get("box")).toMatchObject({ plan: null, ended: true });
  });

  it("[PL27] is refused when the plan is full", async () => {
    for (let n = 0; n < limits.planMembersMax; n++) {
      await harness.adopt(`m${n}`, harness.sandboxes.make(`box${n}`).id);
    }
    harness.sandboxes.make("more");
    expect(await refusal(harness.put("more", "more", false))).toMatchObject({
      code: "too_many",
      planMembersMax: limits.planMembersMax,
    });
    const { outcome, members } = await harness.drive(harness.run());
    expect(outcome).toBe("committed");
    expect(members).toHaveLength(limits.planMembersMax);
  });

  it("[PL28] cannot be created from a missing checkpoint, but one that was created from it is found", async () => {
    const cannot = { code: "checkpoint_expired" as const, message: "gone", facts: {} };
    const call = { spec: { id: "new1" }, metadata: {}, start: true };
    const put = () =>
      putMember(harness.open(), {
        key: "a",
        sandbox: "new1",
        make: call as never,
        createRefusal: cannot,
      });
    expect(await refusal(put())).toMatchObject({ code: "checkpoint_expired" });
    expect(harness.plan.record?.joining).toEqual([]);
    await harness.drive(harness.put("a", "new0"));
    expect(await put()).toMatchObject({ made: false, member: { sandbox: "new0" } });
  });
});

describe("a plan", () => {
  it("[PL29] that is removed releases its members, then its name; another one of that name continues the counters", async () => {
    await harness.adopt("a", harness.sandboxes.make("box").id);
    await harness.drive(harness.run({ key: "k" }));
    harness.sandboxes.names = [["plan", harness.identity.createdAt]];
    const was = await harness.drive(removePlan(harness.plan, harness.identity, "keep"));
    expect(was.members).toMatchObject([{ key: "a", sandbox: "box" }]);
    const { calls: asked } = harness.sandboxes;
    expect(asked.indexOf("forget plan")).toBeGreaterThan(asked.indexOf("leave box #1"));
    expect(harness.sandboxes.names).toEqual([]);
    expect(harness.sandboxes.get("box")).toMatchObject({ plan: null, ended: false });
    expect(await refusal(Promise.resolve().then(() => harness.run()))).toMatchObject({
      code: "not_found",
    });
    // The old identity is not valid any more: the name must be given again.
    expect(await putPlan(harness.plan, harness.identity)).toBe("again");
    const later = { ...harness.identity, createdAt: harness.identity.createdAt + 1 };
    expect(await putPlan(harness.plan, later)).toMatchObject({ name: "plan", members: [] });
    expect(harness.plan.record).toMatchObject({ newestRun: 1, lastRun: null });
    Object.assign(harness.identity, later);
    await harness.adopt("b", "box");
    harness.sandboxes.get("box").files++;
    expect(await harness.drive(harness.run({ key: "k" }))).toMatchObject({ commit: 2 });
    const pages = harness.page(undefined, 10);
    expect(pages.commits.map(({ commit }) => commit)).toEqual([2]);
  });

  it("[PL30] is removed completely wherever it is stopped, and a repeated call waits for the same removal", async () => {
    await harness.adopt("a", harness.sandboxes.make("box").id);
    harness.sandboxes.names = [["plan", harness.identity.createdAt]];
    harness.sandboxes.failAt("leave", "silent");
    const first = refusal(removePlan(harness.plan, harness.identity, "destroy"));
    expect(await harness.drive(first)).toMatchObject({ code: "unavailable" });
    expect(harness.sandboxes.names).toHaveLength(1);
    harness.restart();
    harness.sandboxes.fault = () => undefined;
    await harness.drive(removePlan(harness.plan, harness.identity, "destroy"));
    await harness.settleAll();
    expect(harness.sandboxes.get("box").ended).toBe(true);
    expect(harness.sandboxes.names).toEqual([]);
    const removal = refusal(removePlan(harness.plan, harness.identity, "destroy"));
    expect(await removal).toMatchObject({ code: "not_found" });
  });

  it("[PL31] that was only looked up has no rows, and an idle plan has no alarm and writes nothing", async () => {
    expect(harness.plan.record).toBeUndefined();
    await harness.plan.alarm();
    expect(harness.writes).toBe(0);
    await harness.adopt("a", harness.sandboxes.make("box").id);
    await harness.drive(harness.run());
    await harness.settleAll();
    harness.restart();
    const { writes } = harness;
    harness.open();
    await harness.waitForRun(1, 0);
    harness.page(undefined, 10);
    await harness.put("a", "box", false);
    expect([harness.writes, harness.alarmAt]).toEqual([writes, undefined]);
  });
});
