import { afterEach, beforeEach, describe, expect, it } from "vitest";
import * as plans from "../../../src/objects/directory/plans.ts";
import { DirectoryHarness } from "./harness.ts";

let harness: DirectoryHarness;

beforeEach(() => {
  harness = new DirectoryHarness();
});

afterEach(async () => {
  await harness.pass(60_000);
  expect(harness.timers).toBe(0);
});

describe("a sandbox that a plan creates", () => {
  it("[PL33] is created once, however often the plan calls, also after a restart and if its report arrives first", async () => {
    const { make } = harness.call({});
    const { id } = make.spec;
    await Promise.all([harness.directory.make(make), harness.directory.make(make)]);
    await harness.directory.make(make);
    harness.restart();
    await harness.directory.make(make);
    expect(harness.calls).toEqual([`make ${id}`]);
    expect(harness.row(id)).toMatchObject({ phase: "known", try_at: null });
  });

  it("[PL33] that is refused leaves no row, and can be requested again", async () => {
    const { make } = harness.call({});
    const { id } = make.spec;
    harness.next = "refuses";
    await expect(harness.directory.make(make)).rejects.toMatchObject({ code: "unsupported" });
    expect(harness.row(id)).toBeUndefined();
    harness.next = "answers";
    await harness.directory.make(make);
    expect(harness.box(id).id).toBe(id);
  });

  it("[PL33] that does not respond is created by the alarm, without its plan", async () => {
    const { make } = harness.call({});
    harness.next = "silent";
    await harness.expectUnavailable(harness.directory.make(make));
    harness.box(make.spec.id).mode = "answers";
    await harness.pass(60_000);
    expect(await harness.ring()).toBe(true);
    expect(harness.row(make.spec.id)).toMatchObject({ phase: "known" });
  });
});

describe("the name of a plan", () => {
  it("[PL34] is given to one plan at a time, with a later time each time, whatever the clock does", () => {
    const first = plans.putPlanName(harness, "release");
    expect(first.made).toBe(true);
    expect(plans.putPlanName(harness, "release")).toEqual({ ...first, made: false });
    const others = ["a", "b"].map((name) => plans.putPlanName(harness, name).createdAt);
    expect(new Set([first.createdAt, ...others]).size).toBe(3);
    plans.forgetPlanName(harness, "release", first.createdAt);
    expect(plans.planCreatedAt(harness, "release")).toBeUndefined();
    harness.now -= 60_000;
    const second = plans.putPlanName(harness, "release");
    expect(second.createdAt).toBeGreaterThan(Math.max(first.createdAt, ...others));
    // A late call gives back only the older name, not the present one.
    plans.forgetPlanName(harness, "release", first.createdAt);
    expect(plans.planCreatedAt(harness, "release")).toBe(second.createdAt);
  });
});
