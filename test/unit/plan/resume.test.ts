/** Who is asked again, and when: an answer that it goes on is no silence. */
import { afterEach, describe, expect, it } from "vitest";
import { limits } from "../../../src/protocol/limits.ts";
import { Desk, quiet } from "./harness.ts";

let desk: Desk;

afterEach(async () => {
  desk.boxes.fault = () => undefined;
  await desk.rest();
  expect(desk.plan.record?.run).toBeNull();
  expect([desk.timers, desk.alarmAt]).toEqual([0, undefined]);
});

describe("a member that answers that it is not done yet", () => {
  it("[PL139] is asked again soon, however often, and the plan is free as soon as it is done", async () => {
    desk = await Desk.of(2);
    const gaps: number[] = [];
    const began = desk.now;
    let answeredAt: number | undefined;
    const restoreMs = 10 * 60_000;
    desk.boxes.fault = (step, id) => {
      if (step !== "finish" || id !== "box1") return undefined;
      if (answeredAt !== undefined) gaps.push(desk.now - answeredAt);
      if (desk.now > began + restoreMs) return undefined;
      const again = desk.pause(limits.planFinishMs).then(() => {
        answeredAt = desk.now;
      });
      return { again };
    };
    desk.run().catch(() => undefined);
    await quiet();
    while (desk.plan.record?.run !== null) {
      await desk.next();
      await quiet();
    }
    expect(gaps.length).toBeGreaterThan(20);
    expect(Math.max(...gaps)).toBeLessThanOrEqual(limits.planAgainMs);
    expect(desk.now - began).toBeLessThan(restoreMs + limits.planFinishMs + limits.planAgainMs);
    expect(desk.boxes.most.finish).toBeLessThanOrEqual(2);
  });

  it("[PL139] rings no alarm for nothing where more wait for their turn than are asked at once", async () => {
    desk = await Desk.of(limits.planFinishAtOnceMax * 3);
    desk.boxes.fault = (step) =>
      step === "finish" ? { again: desk.pause(limits.planFinishMs) } : undefined;
    desk.run().catch(() => undefined);
    await quiet();
    const [began, until] = [desk.now, desk.now + 10 * 60_000];
    let rings = 0;
    const ring = desk.ring.bind(desk);
    desk.ring = () => {
      rings++;
      return ring();
    };
    while (desk.now < until) {
      await desk.next();
      await quiet();
    }
    expect(desk.boxes.count("finish")).toBeGreaterThan(200);
    expect(rings).toBeLessThan((until - began) / 1000);
  });

  it("[PL139] leaves whoever does not answer to be asked ever more seldom", async () => {
    desk = await Desk.of(2);
    desk.boxes.fault = (step, id) => {
      if (step !== "finish") return undefined;
      return id === "box0" ? "fails" : { again: Promise.resolve() };
    };
    desk.run().catch(() => undefined);
    await quiet();
    const until = desk.now + 20 * 60_000;
    while (desk.now < until) {
      await desk.next();
      await quiet();
    }
    expect(desk.boxes.count("finish", "box0")).toBeLessThan(15);
    expect(desk.boxes.count("finish", "box0")).toBeGreaterThan(8);
    expect(desk.boxes.count("finish", "box1")).toBeGreaterThan(500);
  });

  it("[PL139] is asked at once by a fresh instance, whose alarm stands", async () => {
    desk = await Desk.of(1);
    desk.boxes.fault = (step) => (step === "finish" ? { again: Promise.resolve() } : undefined);
    desk.run().catch(() => undefined);
    await quiet();
    expect(desk.boxes.count("finish")).toBe(1);
    desk.restart();
    desk.boxes.fault = () => undefined;
    const { now } = desk;
    await desk.rest();
    expect(desk.now - now).toBeLessThanOrEqual(limits.planAgainMs);
    expect(desk.boxes.of("box0").committed).toBe(1);
  });
});

describe("a member that takes its time to answer", () => {
  it("[PL139] was not asked in vain: what fails after that is tried again soon", async () => {
    desk = await Desk.of(1);
    const asked: number[] = [];
    desk.boxes.fault = (step, _id, nth) => {
      if (step !== "finish") return undefined;
      asked.push(desk.now);
      if (nth > 1) return undefined;
      return { gate: desk.pause(34_000).then(() => Promise.reject(new Error("lost"))) };
    };
    desk.run().catch(() => undefined);
    await desk.rest();
    const [first = 0, second = 0, ...more] = asked;
    expect(more).toEqual([]);
    expect(second - first).toBeGreaterThanOrEqual(34_000);
    expect(second - first).toBeLessThanOrEqual(34_000 + limits.planDecidingLookMs);
  });
});
