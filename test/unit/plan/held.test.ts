import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Disposition } from "../../../src/core/plan/record.ts";
import { removeMember, removePlan } from "../../../src/objects/plan/members.ts";
import { PlanHarness, refusal, settle } from "./harness.ts";

let harness: PlanHarness;

beforeEach(async () => {
  harness = await PlanHarness.withMembers(3);
  harness.sandboxes.names = [["plan", harness.identity.createdAt]];
});

afterEach(() => harness.expectNothingLeft());

const ended = () => harness.boxes().map((box) => box.ended);
const keys = () => harness.plan.record?.members.map(({ key }) => key);
const ways: Record<string, (fate: Disposition) => Promise<unknown>> = {
  "taken out": (fate) => removeMember(harness.plan, "m1", fate),
  "of a plan that ends": (fate) => removePlan(harness.plan, harness.identity, fate),
};

describe.each(Object.entries(ways))("a held member %s", (what, end) => {
  it("[PL135] refuses its end, names itself and its holder, and nothing changes", async () => {
    harness.sandboxes.get("box1").holder = "ci";
    const before = harness.plan.record;
    const refused = await harness.refusal(end("destroy"));
    expect(refused).toMatchObject({ code: "lease_held", key: "m1", sandbox: "box1", holder: "ci" });
    expect(harness.plan.record).toEqual(before);
    expect([
      harness.sandboxes.count("leave"),
      harness.sandboxes.count("end"),
      harness.sandboxes.names,
    ]).toEqual([0, 0, [["plan", harness.identity.createdAt]]]);
    harness.sandboxes.get("box1").holder = null;
    await harness.drive(end("destroy"));
    await harness.settleAll();
    expect(harness.sandboxes.get("box1")).toMatchObject({ ended: true, plan: null });
  });

  it("[PL135] is ended by force, and released if it is kept, even if its lease is held", async () => {
    harness.sandboxes.get("box1").holder = "ci";
    await harness.drive(end("force"));
    await harness.settleAll();
    expect(harness.sandboxes.get("box1")).toMatchObject({ ended: true, plan: null });
    expect(ended()).toEqual([what === "of a plan that ends", true, what === "of a plan that ends"]);
    expect(harness.sandboxes.count("holder")).toBe(0);
  });

  it("[PL135] is kept if it was only removed from the plan", async () => {
    harness.sandboxes.get("box1").holder = "ci";
    await harness.drive(end("keep"));
    await harness.settleAll();
    expect(harness.sandboxes.get("box1")).toMatchObject({ ended: false, plan: null });
  });

  it("[PL136] that was free at the decision leaves the plan, and stays if somebody has acquired its lease since", async () => {
    const { promise: closed, resolve: open } = Promise.withResolvers<void>();
    harness.sandboxes.failAt("leave", { gate: closed }, "box1");
    const out = end("destroy");
    const result = out.catch(({ code, facts }) => ({ code, ...facts }));
    await settle();
    expect(keys()).not.toContain("m1");
    // A restart does not change what was decided.
    harness.restart();
    harness.sandboxes.get("box1").holder = "ci";
    open();
    await harness.settleAll();
    expect(harness.sandboxes.get("box1")).toMatchObject({ ended: false, plan: null });
    void result;
  });

  it("[PL136] is not ended if it is unknown whether its lease is held, and nothing changes", async () => {
    harness.sandboxes.failAt("holder", "silent", "box1");
    const before = harness.plan.record;
    expect(await harness.refusal(end("destroy"))).toMatchObject({
      code: "unavailable",
      sandbox: "box1",
    });
    expect(harness.plan.record).toEqual(before);
    await harness.drive(end("force"));
  });
});

describe("a call that removes a member", () => {
  it("[PL136] learns that somebody has acquired its lease in the meantime, and that it was not ended", async () => {
    harness.sandboxes.fault = (step) => {
      if (step === "leave") harness.sandboxes.get("box1").holder = "ci";
      return undefined;
    };
    const result = await harness.refusal(removeMember(harness.plan, "m1", "destroy"));
    expect(result).toMatchObject({ code: "lease_held", key: "m1", holder: "ci" });
    expect(result.message).toContain("has left the plan");
    expect(keys()).toEqual(["m0", "m2"]);
    expect(ended()).toEqual([false, false, false]);
    // The next call does not get this error again.
    harness.sandboxes.get("box1").holder = null;
    harness.sandboxes.fault = () => undefined;
    await harness.adopt("m1", "box1");
    expect(await harness.drive(removeMember(harness.plan, "m1", "destroy"))).toMatchObject({
      key: "m1",
    });
    expect(ended()).toEqual([false, true, false]);
  });

  it("[PL135] succeeds if the sandbox is already destroyed", async () => {
    harness.sandboxes.get("box1").ended = true;
    harness.sandboxes.all.delete("box2");
    await harness.drive(removePlan(harness.plan, harness.identity, "destroy"));
    await harness.settleAll();
    expect(ended()).toEqual([true, true]);
  });
});

describe("a removal that waits for a joining member", () => {
  it("[PL142] is decided in one step: a concurrent join either comes first and is ended too, or finds no plan", async () => {
    harness = new PlanHarness();
    harness.sandboxes.names = [["plan", harness.identity.createdAt]];
    harness.sandboxes.make("old");
    harness.sandboxes.failAt("join", { refuse: "in_other_plan" }, "old");
    const first = refusal(harness.put("k", "old", false));
    // Both wait for the first join, and are woken by its refusal.
    const end = removePlan(harness.plan, harness.identity, "destroy");
    const second = harness.put("k", "made").then(
      () => "joined",
      () => "no plan",
    );
    await harness.drive(first);
    await harness.drive(Promise.all([end, second]));
    await harness.settleAll();
    const made = harness.sandboxes.all.get("made");
    expect(made?.plan ?? null).toBeNull();
    expect(made === undefined || made.ended).toBe(true);
    expect(await second).toBe(made === undefined ? "no plan" : "joined");
  });
});
