/** Which participants get a request again, and when: `again` is a response, not a failure. */
import { afterEach, describe, expect, it } from "vitest";
import { limits } from "../../../src/protocol/limits.ts";
import { PlanHarness, settle } from "./harness.ts";

let harness: PlanHarness;

afterEach(() => harness.expectNothingLeft());

describe("a member that responds that it is not done yet", () => {
  it("[PL139] gets the request again soon, however often, and the plan is free as soon as it is done", async () => {
    harness = await PlanHarness.withMembers(2);
    const gaps: number[] = [];
    const began = harness.now;
    let answeredAt: number | undefined;
    const restoreMs = 10 * 60_000;
    harness.sandboxes.fault = (step, id) => {
      if (step !== "finish" || id !== "box1") return undefined;
      if (answeredAt !== undefined) gaps.push(harness.now - answeredAt);
      if (harness.now > began + restoreMs) return undefined;
      const later = harness.sleep(limits.planFinishMs).then(() => {
        answeredAt = harness.now;
      });
      return { again: later };
    };
    await harness.begin();
    while (harness.plan.record?.run !== null) {
      await harness.next();
      await settle();
    }
    expect(gaps.length).toBeGreaterThan(20);
    expect(Math.max(...gaps)).toBeLessThanOrEqual(limits.planPendingRetryMs);
    expect(harness.now - began).toBeLessThan(
      restoreMs + limits.planFinishMs + limits.planPendingRetryMs,
    );
    expect(harness.sandboxes.mostRunning.finish).toBeLessThanOrEqual(2);
  });

  it("[PL139] causes no useless alarm when more requests are pending than may run at once", async () => {
    harness = await PlanHarness.withMembers(limits.planFinishesMax * 3);
    harness.sandboxes.fault = (step) =>
      step === "finish" ? { again: harness.sleep(limits.planFinishMs) } : undefined;
    await harness.begin();
    const [began, until] = [harness.now, harness.now + 10 * 60_000];
    let rings = 0;
    const ring = harness.ring.bind(harness);
    harness.ring = () => {
      rings++;
      return ring();
    };
    while (harness.now < until) {
      await harness.next();
      await settle();
    }
    expect(harness.sandboxes.count("finish")).toBeGreaterThan(200);
    expect(rings).toBeLessThan((until - began) / 1000);
  });

  it("[PL139] does not change the growing delay for members that do not respond", async () => {
    harness = await PlanHarness.withMembers(2);
    harness.sandboxes.fault = (step, id) => {
      if (step !== "finish") return undefined;
      return id === "box0" ? "fails" : { again: Promise.resolve() };
    };
    await harness.begin();
    const until = harness.now + 20 * 60_000;
    while (harness.now < until) {
      await harness.next();
      await settle();
    }
    expect(harness.sandboxes.count("finish", "box0")).toBeLessThan(15);
    expect(harness.sandboxes.count("finish", "box0")).toBeGreaterThan(8);
    expect(harness.sandboxes.count("finish", "box1")).toBeGreaterThan(500);
  });

  it("[PL139] gets the request at once after a restart, which keeps its alarm", async () => {
    harness = await PlanHarness.withMembers(1);
    harness.sandboxes.failAt("finish", { again: Promise.resolve() });
    await harness.begin();
    expect(harness.sandboxes.count("finish")).toBe(1);
    harness.restart();
    harness.sandboxes.fault = () => undefined;
    const { now } = harness;
    await harness.settleAll();
    expect(harness.now - now).toBeLessThanOrEqual(limits.planPendingRetryMs);
    expect(harness.sandboxes.get("box0").committed).toBe(1);
  });
});

describe("a member that responds slowly", () => {
  it("[PL139] does not count as failed: a failure after that is retried soon", async () => {
    harness = await PlanHarness.withMembers(1);
    const callTimes: number[] = [];
    harness.sandboxes.fault = (step, _id, nth) => {
      if (step !== "finish") return undefined;
      callTimes.push(harness.now);
      if (nth > 1) return undefined;
      return { gate: harness.sleep(34_000).then(() => Promise.reject(new Error("lost"))) };
    };
    harness.run().catch(() => undefined);
    await harness.settleAll();
    const [first = 0, second = 0, ...more] = callTimes;
    expect(more).toEqual([]);
    expect(second - first).toBeGreaterThanOrEqual(34_000);
    expect(second - first).toBeLessThanOrEqual(34_000 + limits.planUndecidedCheckMs);
  });
});
