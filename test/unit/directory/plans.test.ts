import { afterEach, beforeEach, describe, expect, it } from "vitest";
import * as plans from "../../../src/objects/directory/plans.ts";
import { Desk, quiet } from "./harness.ts";

let desk: Desk;

beforeEach(() => {
  desk = new Desk();
});

afterEach(async () => {
  await desk.pass(60_000);
  expect(desk.timers).toBe(0);
});

describe("a sandbox that a plan makes", () => {
  it("[PL33] is one, however often it is asked for, also after a stop and when it is first known by its own word", async () => {
    const { make } = desk.call({});
    const { id } = make.spec;
    await Promise.all([desk.directory.make(make), desk.directory.make(make)]);
    await desk.directory.make(make);
    desk.restart();
    await desk.directory.make(make);
    expect(desk.asked).toEqual([`make ${id}`]);
    expect(desk.row(id)).toMatchObject({ phase: "known", try_at: null });
  });

  it("[PL33] that is refused leaves no row, and can be asked for again", async () => {
    const { make } = desk.call({});
    const { id } = make.spec;
    desk.next = "refuses";
    await expect(desk.directory.make(make)).rejects.toMatchObject({ code: "unsupported" });
    expect(desk.row(id)).toBeUndefined();
    desk.next = "answers";
    await desk.directory.make(make);
    expect(desk.box(id).id).toBe(id);
  });

  it("[PL33] that cannot be asked is made by the alarm, without its plan", async () => {
    const { make } = desk.call({});
    desk.next = "silent";
    const asked = expect(desk.directory.make(make)).rejects.toMatchObject({ code: "unavailable" });
    await quiet();
    await desk.pass(10_000);
    await asked;
    desk.box(make.spec.id).mode = "answers";
    await desk.pass(60_000);
    expect(await desk.ring()).toBe(true);
    expect(desk.row(make.spec.id)).toMatchObject({ phase: "known" });
  });
});

describe("the name of a plan", () => {
  it("[PL34] is given once at a time, each time with a later time, whatever the clock does", () => {
    const first = plans.putPlanName(desk, "release");
    expect(first.made).toBe(true);
    expect(plans.putPlanName(desk, "release")).toEqual({ ...first, made: false });
    const others = ["a", "b"].map((name) => plans.putPlanName(desk, name).createdAt);
    expect(new Set([first.createdAt, ...others]).size).toBe(3);
    plans.forgetPlanName(desk, "release", first.createdAt);
    expect(plans.planCreatedAt(desk, "release")).toBeUndefined();
    desk.now -= 60_000;
    const second = plans.putPlanName(desk, "release");
    expect(second.createdAt).toBeGreaterThan(Math.max(first.createdAt, ...others));
    // One that comes late gives back what was given then, and nothing of now.
    plans.forgetPlanName(desk, "release", first.createdAt);
    expect(plans.planCreatedAt(desk, "release")).toBe(second.createdAt);
  });
});
