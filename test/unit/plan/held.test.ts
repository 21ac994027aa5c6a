import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Disposition } from "../../../src/core/plan/record.ts";
import { removeMember, removePlan } from "../../../src/objects/plan/members.ts";
import { Desk, quiet, refusal } from "./harness.ts";

let desk: Desk;

beforeEach(async () => {
  desk = await Desk.of(3);
  desk.boxes.names = [["plan", desk.named.createdAt]];
});

afterEach(async () => {
  desk.boxes.fault = () => undefined;
  await desk.rest();
  while (await desk.next()) await quiet();
  expect([desk.plan.record?.leaving, desk.timers, desk.alarmAt]).toEqual([[], 0, undefined]);
});

const ended = () => [...desk.boxes.all.values()].map((box) => box.ended);
const keys = () => desk.plan.record?.members.map(({ key }) => key);
const ways: Record<string, (fate: Disposition) => Promise<unknown>> = {
  "taken out": (fate) => removeMember(desk.plan, "m1", fate),
  "of a plan that ends": (fate) => removePlan(desk.plan, desk.named, fate),
};

describe.each(Object.entries(ways))("a held member %s", (what, end) => {
  it("[PL135] refuses its end by its name and its holder's, and nothing is changed", async () => {
    desk.boxes.of("box1").lessee = "ci";
    const before = desk.plan.record;
    const refused = await desk.drive(refusal(end("destroy")));
    expect(refused).toMatchObject({
      code: "lease_held",
      key: "m1",
      sandbox: "box1",
      holder: "ci",
    });
    expect(desk.plan.record).toEqual(before);
    expect([desk.boxes.count("leave"), desk.boxes.count("end"), desk.boxes.names]).toEqual([
      0,
      0,
      [["plan", desk.named.createdAt]],
    ]);
    desk.boxes.of("box1").lessee = null;
    await desk.drive(end("destroy"));
    await desk.rest();
    expect(desk.boxes.of("box1")).toMatchObject({ ended: true, plan: null });
  });

  it("[PL135] is ended by force, and let go where it is kept, whoever holds it", async () => {
    desk.boxes.of("box1").lessee = "ci";
    await desk.drive(end("force"));
    await desk.rest();
    expect(desk.boxes.of("box1")).toMatchObject({ ended: true, plan: null });
    expect(ended()).toEqual([what === "of a plan that ends", true, what === "of a plan that ends"]);
    expect(desk.boxes.count("holder")).toBe(0);
  });

  it("[PL135] is kept where it was only let go", async () => {
    desk.boxes.of("box1").lessee = "ci";
    await desk.drive(end("keep"));
    await desk.rest();
    expect(desk.boxes.of("box1")).toMatchObject({ ended: false, plan: null });
  });

  it("[PL136] that nobody held when it was decided is out, and kept by who has taken its lease since", async () => {
    let open = () => {};
    const closed = new Promise<void>((resolve) => {
      open = resolve;
    });
    desk.boxes.fault = (step, id) =>
      step === "leave" && id === "box1" ? { gate: closed } : undefined;
    const out = end("destroy");
    const told = out.catch(({ code, facts }) => ({ code, ...facts }));
    await quiet();
    expect(keys()).not.toContain("m1");
    // What was decided outlives the instance that decided.
    desk.restart();
    desk.boxes.of("box1").lessee = "ci";
    open();
    await desk.rest();
    expect(desk.boxes.of("box1")).toMatchObject({ ended: false, plan: null });
    void told;
  });

  it("[PL136] of which nobody knows whether it is held is not ended, and nothing is changed", async () => {
    desk.boxes.fault = (step, id) => (step === "holder" && id === "box1" ? "silent" : undefined);
    const before = desk.plan.record;
    expect(await desk.drive(refusal(end("destroy")))).toMatchObject({
      code: "unavailable",
      sandbox: "box1",
    });
    expect(desk.plan.record).toEqual(before);
    await desk.drive(end("force"));
  });
});

describe("who takes a member out", () => {
  it("[PL136] is told that somebody has taken its lease in that moment, and that it lives on", async () => {
    desk.boxes.fault = (step) => {
      if (step === "leave") desk.boxes.of("box1").lessee = "ci";
      return undefined;
    };
    const told = await desk.drive(refusal(removeMember(desk.plan, "m1", "destroy")));
    expect(told).toMatchObject({ code: "lease_held", key: "m1", holder: "ci" });
    expect(told.message).toContain("has left the plan");
    expect(keys()).toEqual(["m0", "m2"]);
    expect(ended()).toEqual([false, false, false]);
    // Of which the next one learns nothing.
    desk.boxes.of("box1").lessee = null;
    desk.boxes.fault = () => undefined;
    await desk.adopt("m1", "box1");
    expect(await desk.drive(removeMember(desk.plan, "m1", "destroy"))).toMatchObject({ key: "m1" });
    expect(ended()).toEqual([false, true, false]);
  });

  it("[PL135] that is gone already is refused by nobody", async () => {
    desk.boxes.of("box1").ended = true;
    desk.boxes.all.delete("box2");
    await desk.drive(removePlan(desk.plan, desk.named, "destroy"));
    await desk.rest();
    expect(ended()).toEqual([true, true]);
  });
});

describe("an end that waits for somebody on the way in", () => {
  it("[PL142] is decided in one step: who comes at that moment joins before it, and is ended with the rest, or finds no plan", async () => {
    desk = new Desk();
    desk.boxes.names = [["plan", desk.named.createdAt]];
    desk.boxes.make("old");
    desk.boxes.fault = (step, id) =>
      step === "join" && id === "old" ? { refuse: "in_other_plan" } : undefined;
    const first = refusal(desk.put("k", "old", false));
    // Both wait for the first one, and are woken by its refusal.
    const end = removePlan(desk.plan, desk.named, "destroy");
    const second = desk.put("k", "made").then(
      () => "joined",
      () => "no plan",
    );
    await desk.drive(first);
    await desk.drive(Promise.all([end, second]));
    await desk.rest();
    const made = desk.boxes.all.get("made");
    expect(made?.plan ?? null).toBeNull();
    expect(made === undefined || made.ended).toBe(true);
    expect(await second).toBe(made === undefined ? "no plan" : "joined");
  });
});
