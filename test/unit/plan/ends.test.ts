import { afterEach, describe, expect, it } from "vitest";
import { limits } from "../../../src/protocol/limits.ts";
import type { Fault, Step } from "./fake-sandboxes.ts";
import { PlanHarness, refusal, settle } from "./harness.ts";

let harness: PlanHarness;

afterEach(() => harness.expectNothingLeft());

const boxes = () => harness.boxes();
const committed = () => boxes().map((box) => box.committed);

/** A plan of three members, committed once, each with new work. */
async function withWork(): Promise<void> {
  harness = await PlanHarness.withMembers(3);
  await harness.drive(harness.run());
  for (const box of boxes()) box.files = 2;
}

/** All of them, or none. */
function expectWhole(): void {
  expect(new Set(committed()).size).toBe(1);
}

const steps: Step[] = ["hold", "prepare", "finish"];
const ways: Fault[] = ["fails", "fails afterwards", "silent"];
const faults = steps.flatMap((step) => ways.map((way) => [step, way] as const));

describe("an alarm", () => {
  it("[O22] of a plan writes one line to the log", async () => {
    await withWork();
    const before = harness.logged.length;
    await harness.ring();
    await harness.ring();
    const alarm = { plan: harness.plan.record?.name, why: "alarm" };
    expect(alarm.plan).toBeDefined();
    expect(harness.logged.slice(before)).toEqual([alarm, alarm]);
  });
});

describe("a member that does not respond", () => {
  it.each(faults)(
    "[PL10] once, at its %s (%s), gets the request again, and all members get the same result",
    async (step, way) => {
      await withWork();
      let hit = 0;
      harness.sandboxes.fault = (called, id) => {
        if (called !== step || id !== "box1" || hit > 0) return undefined;
        hit++;
        return way;
      };
      await harness.drive(harness.run());
      expect(hit).toBe(1);
      await harness.settleAll();
      const result = await harness.waitForRun(2, 0);
      // A hold without a response uses up the run's `waitMs`; everything else recovers.
      const isLate = step === "hold" && way === "silent";
      expect(result.outcome).toBe(isLate ? "aborted" : "committed");
      expect(committed()).toEqual(boxes().map(() => (isLate ? 1 : 2)));
      expect(boxes().map(({ files }) => files)).toEqual([2, 2, 2]);
    },
  );

  it.each(["hold", "prepare"] as const)(
    "[PL11] at its %s, for ever, aborts the run in time, and keeps it open until the member has confirmed",
    async (step) => {
      await withWork();
      harness.sandboxes.fault = (called, id) =>
        id === "box1" && (called === step || called === "finish") ? "silent" : undefined;
      const began = harness.now;
      const result = await harness.drive(harness.run());
      expect(result.outcome).toBe("pending");
      expect(harness.now - began).toBeLessThanOrEqual(limits.planResponseMs + 1_000);
      for (let n = 0; n < 2_000 && harness.plan.record?.run?.decision === null; n++)
        await harness.next();
      const run = harness.plan.record?.run;
      expect(run?.decision).toMatchObject({ go: false, error: { code: "unavailable" } });
      expect((run?.decision?.at ?? 0) - began).toBeLessThanOrEqual(limits.planPrepareMs + 60_000);
      expect(await refusal(harness.run({ kind: "rollback" }))).toMatchObject({ code: "plan_busy" });
      // The request is repeated at growing intervals, and never forgotten.
      const callsBefore = harness.sandboxes.count("finish", "box1");
      harness.now += 24 * 60 * limits.reportRetryMaxMs;
      for (let n = 0; n < 40; n++) await harness.next();
      expect(harness.sandboxes.count("finish", "box1")).toBeGreaterThan(callsBefore);
      harness.sandboxes.fault = () => undefined;
      await harness.settleAll();
      expect(committed()).toEqual([1, 1, 1]);
      expect(boxes().map(({ files }) => files)).toEqual([2, 2, 2]);
    },
  );

  it("[PL12] after the decision gets the request at growing intervals until it has done its part", async () => {
    await withWork();
    let away = true;
    harness.sandboxes.fault = (called, id) =>
      called === "finish" && id === "box1" && away ? "fails" : undefined;
    const result = await harness.drive(harness.run());
    expect(result).toMatchObject({ outcome: "pending", decidedAt: expect.any(String) });
    expect(result.members.map(({ outcome }) => outcome)).toEqual([
      "committed",
      "pending",
      "committed",
    ]);
    const gaps: number[] = [];
    for (let n = 0; n < 8; n++) {
      const before = harness.now;
      const callsBefore = harness.sandboxes.count("finish", "box1");
      while (harness.sandboxes.count("finish", "box1") === callsBefore) {
        if (!(await harness.next())) expect.fail("it was given up");
      }
      gaps.push(harness.now - before);
    }
    expect(gaps[7]).toBeGreaterThan(gaps[0] ?? 0);
    expect(Math.max(...gaps)).toBeLessThanOrEqual(limits.reportRetryMaxMs);
    away = false;
    await harness.settleAll();
    expect(committed()).toEqual([2, 2, 2]);
    expect(harness.plan.record?.lastRun).toMatchObject({ n: 2, decision: { go: true } });
  });

  it("[PL13] because it is destroyed is reported as failed, and does not keep the run from ending", async () => {
    await withWork();
    harness.sandboxes.failAt("finish", { refuse: "sandbox_destroyed" }, "box1");
    const { outcome, members } = await harness.drive(harness.run());
    expect(outcome).toBe("committed");
    expect(members[1]).toMatchObject({ outcome: "failed", error: { code: "sandbox_destroyed" } });
    harness.sandboxes.get("box1").heldBy = null;
  });
});

/** Stopped after this many requests, wherever that is. */
const stops = Array.from({ length: 12 }, (_, n) => n);

async function runUntilRequest(stop: number, call: Parameters<PlanHarness["run"]>[0] = {}) {
  const began = harness.sandboxes.calls.length;
  harness.run(call).catch(() => undefined);
  for (let n = 0; n < 500 && harness.sandboxes.calls.length <= began + stop; n++) {
    await new Promise<void>((resolve) => setImmediate(resolve));
  }
}

describe("a plan that is stopped", () => {
  it.each(stops)(
    "[PL14] after request %i finishes what was decided and aborts what was not: all or none",
    async (stop) => {
      await withWork();
      await runUntilRequest(stop);
      const { run, lastRun: last } = harness.plan.record ?? {};
      const known = run?.n === 2 ? run.decision : (last?.decision ?? null);
      harness.restart();
      // Nobody calls: the alarm alone continues the run.
      await harness.settleAll();
      expect(harness.plan.record?.run).toBeNull();
      expect(harness.plan.record?.lastRun).toMatchObject({ n: 2 });
      expectWhole();
      if (known !== null) expect(committed()[0]).toBe(known.go ? 2 : 1);
      else expect(harness.plan.record?.lastRun?.decision).toMatchObject({ go: false });
      expect(boxes().map(({ files }) => files)).toEqual([2, 2, 2]);
      const after = await harness.drive(harness.run({ allowEmpty: true }));
      expect(after).toMatchObject({ commit: 3, outcome: "committed" });
    },
  );

  it("[PL14] in a rollback reaches one result too, wherever it is stopped", async () => {
    for (const stop of stops) {
      await withWork();
      await runUntilRequest(stop, { kind: "rollback" });
      harness.restart();
      await harness.settleAll();
      expect(harness.plan.record?.lastRun, `stop ${stop}`).toMatchObject({ n: 2 });
      expect(new Set(boxes().map(({ files }) => files)).size, `stop ${stop}`).toBe(1);
    }
  });

  it.each(["commit", "rollback"] as const)(
    "[PL14] by the write of its decision has sent it to nobody: the %s is aborted at all members",
    async (kind) => {
      await withWork();
      harness.stopsAt = (query, [, head]) =>
        query.includes("INTO run") && String(head).includes('"go":true');
      await harness.begin({ kind });
      expect([harness.sandboxes.count("prepare"), harness.sandboxes.count("finish")]).toEqual([
        6, 3,
      ]);
      harness.stopsAt = () => false;
      harness.restart();
      await harness.settleAll();
      expect(harness.plan.record?.lastRun).toMatchObject({ n: 2, decision: { go: false } });
      expect(boxes().map(({ files, committed }) => [files, committed])).toEqual(
        boxes().map(() => [2, 1]),
      );
    },
  );

  it("[PL15] loads its whole state again", async () => {
    await withWork();
    harness.sandboxes.failAt("finish", "silent", "box2");
    await harness.begin();
    const before = harness.plan.record;
    expect(before?.run?.decision?.go).toBe(true);
    harness.sandboxes.fault = () => "silent";
    harness.restart();
    expect(harness.plan.record).toEqual(before);
  });
});

describe("a late response", () => {
  it("[PL16] of a run that has ended does not change the next run", async () => {
    await withWork();
    const [late, slow] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    // The save of run 2 hangs at one member, another refuses: it is aborted meanwhile. Run 3 hangs there too.
    harness.sandboxes.fault = (called, id, nth) => {
      if (called !== "prepare") return undefined;
      if (id === "box0" && nth === 2) return { gate: late.promise };
      if (id === "box0" && nth === 3) return { gate: slow.promise };
      return id === "box1" && nth === 2 ? { refuse: "disk_full" } : undefined;
    };
    expect((await harness.drive(harness.run())).outcome).toBe("aborted");
    const next = harness.run();
    await settle();
    expect(harness.plan.record?.run).toMatchObject({ n: 3, decision: null });
    late.resolve();
    await settle();
    expect(harness.plan.record?.run).toMatchObject({ n: 3, decision: null });
    slow.resolve();
    const result = await harness.drive(next);
    expect(result).toMatchObject({ commit: 3, outcome: "committed" });
    expect(harness.sandboxes.count("prepare", "box0")).toBe(3);
    expect(committed()).toEqual([2, 2, 2]);
  });
});

describe("a run that lasts", () => {
  it("[PL17] is returned as pending in time, continues, and is returned to callers that wait for its end", async () => {
    await withWork();
    const { promise: closed, resolve: open } = Promise.withResolvers<void>();
    harness.sandboxes.failAt("prepare", { gate: closed });
    const began = harness.now;
    const result = await harness.drive(harness.run({ key: "k" }));
    expect(result).toMatchObject({ commit: 2, outcome: "pending" });
    expect(harness.now - began).toBe(limits.planResponseMs);
    const waiting = harness.waitForRun(2, 25_000);
    await settle();
    open();
    expect(await harness.drive(waiting)).toMatchObject({ commit: 2, outcome: "committed" });
    expect(await harness.drive(harness.run({ key: "k" }))).toMatchObject({ commit: 2 });
    expect(await refusal(harness.waitForRun(9, 0))).toMatchObject({ code: "not_found" });
  });

  it("[PL18] keeps its object in memory while it is undecided, and sends no request twice at once", async () => {
    await withWork();
    const { promise: closed, resolve: open } = Promise.withResolvers<void>();
    harness.sandboxes.failAt("prepare", { gate: closed });
    await harness.begin();
    const callsBefore = harness.sandboxes.count("prepare");
    for (let n = 0; n < 8; n++) {
      const alarmAt = harness.alarmAt ?? Number.POSITIVE_INFINITY;
      expect(alarmAt - harness.now).toBeLessThanOrEqual(limits.planUndecidedCheckMs);
      await harness.ring();
    }
    expect(harness.sandboxes.count("prepare")).toBe(callsBefore);
    open();
    await harness.settleAll();
    expect(committed()).toEqual([2, 2, 2]);
  });
});

describe("an ended run", () => {
  it("[PL19] is stored up to a limit, with its members and keys, and shown in pages newest first", async () => {
    harness = await PlanHarness.withMembers(2);
    const runs = limits.commitsStoredMax + 5;
    for (let n = 1; n <= runs; n++) {
      await harness.drive(harness.run({ allowEmpty: true, key: `k${n}` }));
    }
    harness.restart();
    const seen: number[] = [];
    let cursor: number | undefined;
    do {
      const { commits, nextCursor } = harness.page(cursor, 30);
      seen.push(...commits.map(({ commit }) => commit));
      cursor = nextCursor === null ? undefined : Number(nextCursor);
    } while (cursor !== undefined);
    expect(seen).toEqual(Array.from({ length: limits.commitsStoredMax }, (_, n) => runs - n));
    expect((await harness.waitForRun(6, 0)).members).toHaveLength(2);
    expect(await refusal(harness.waitForRun(5, 0))).toMatchObject({ code: "not_found" });
    const left = harness.rows.prepare("SELECT min(n) AS n FROM keyed").get();
    expect(left).toEqual({ n: 6 });
    // Its key is forgotten with the run.
    const next = await harness.drive(harness.run({ allowEmpty: true, key: "k5" }));
    expect(next.commit).toBe(runs + 1);
  });

  it("[PL134] remains after any number of runs without effect, of which only a few are stored", async () => {
    harness = await PlanHarness.withMembers(2);
    const first = await harness.drive(harness.run({ key: "one" }));
    for (const box of boxes()) box.files = 2;
    harness.sandboxes.failAt("hold", { refuse: "lease_held" });
    const runs = limits.commitsStoredMax + 5;
    for (let n = 2; n <= runs; n++) await harness.refusal(harness.run({ key: `k${n}` }));
    harness.restart();
    const { commits } = harness.page(undefined, limits.commitsStoredMax);
    const kept = Array.from({ length: limits.abortedRunsStoredMax }, (_, n) => runs - n);
    expect(commits.map(({ commit }) => commit)).toEqual([...kept, 1]);
    expect(await harness.waitForRun(1, 0)).toEqual(first);
    expect(await harness.drive(harness.run({ key: "one" }))).toEqual(first);
    const numbers = (table: string) =>
      harness.rows.prepare(`SELECT DISTINCT n FROM ${table} ORDER BY n DESC`).all();
    for (const table of ["part", "keyed"]) {
      expect(numbers(table), table).toEqual([...kept, 1].map((n) => ({ n })));
    }
  });
});
