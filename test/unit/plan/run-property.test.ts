import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  completeJoin,
  openPlan,
  startJoin,
  startRemoval,
} from "../../../src/core/plan/membership.ts";
import { pendingRunRequests } from "../../../src/core/plan/pending.ts";
import type { PlanRecord, Run } from "../../../src/core/plan/record.ts";
import { beginRun, type RunEvent, stepRun } from "../../../src/core/plan/run.ts";

const sandboxes = ["a", "b", "c"];
const counts = { added: 0, modified: 1, deleted: 0 };
const changes = { added: [], modified: ["x"], deleted: [], counts, bytes: 1 };

function often<Word>(word: Word): Word[] {
  return [word, word, word, word, word];
}

/** What can happen to a plan, in any order: responses of this run and of others, calls, restarts, time. */
const happening = fc.oneof(
  {
    weight: 2,
    arbitrary: fc.record({
      what: fc.constant("begin" as const),
      kind: fc.constantFrom("commit" as const, "rollback" as const),
      mode: fc.constantFrom("atomic" as const, "best_effort" as const),
    }),
  },
  {
    weight: 20,
    arbitrary: fc.record({
      what: fc.constantFrom(
        "held" as const,
        ...often("yes" as const),
        "no" as const,
        ...often("ended" as const),
      ),
      sandbox: fc.constantFrom(...sandboxes),
      /** How many runs earlier. */
      late: fc.constantFrom(0, 0, 0, 1),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      what: fc.constantFrom("put" as const, "remove" as const),
      sandbox: fc.constantFrom(...sandboxes),
    }),
  },
  { weight: 1, arbitrary: fc.record({ what: fc.constant("instance" as const) }) },
  {
    weight: 1,
    arbitrary: fc.record({
      what: fc.constant("time" as const),
      ms: fc.integer({ min: 1, max: 900_000 }),
    }),
  },
);
type Happening = typeof happening extends fc.Arbitrary<infer One> ? One : never;

function eventOf(happening: Happening, n: number): RunEvent | undefined {
  if (happening.what === "instance") return { type: "instance" };
  if (happening.what === "time") return { type: "deadline" };
  if (!("late" in happening)) return undefined;
  const about = { n: n - happening.late, sandbox: happening.sandbox };
  if (happening.what === "held") return { type: "held", ...about };
  if (happening.what === "ended") return { type: "ended", ...about, ended: { outcome: "aborted" } };
  const yes = { yes: { checkpoint: `${happening.sandbox}.1`, changes } };
  const no = { no: { code: "disk_full", message: "full" } };
  return { type: "voted", ...about, vote: happening.what === "yes" ? yes : no };
}

function happens(plan: PlanRecord, happening: Happening, now: number): PlanRecord {
  if (happening.what === "begin") {
    const { kind, mode } = happening;
    const begun = beginRun(plan, { kind, mode, allowEmpty: false, waitMs: 1_000 }, now);
    return "plan" in begun ? begun.plan : plan;
  }
  if (happening.what === "put") {
    const wanted = {
      key: `k${happening.sandbox}`,
      sandbox: happening.sandbox,
      createsSandbox: false,
    };
    return completeJoin(startJoin(plan, wanted, now).plan, wanted.key, happening.sandbox);
  }
  if (happening.what === "remove") {
    const removal = startRemoval(plan, `k${happening.sandbox}`, "keep");
    return "plan" in removal ? { ...removal.plan, leaving: [] } : plan;
  }
  const event = eventOf(happening, plan.newestRun);
  return event === undefined ? plan : stepRun(plan, event, now);
}

const membersOf = ({ members }: PlanRecord) => members.map(({ sandbox }) => sandbox).sort();

function expectRight(before: PlanRecord, after: PlanRecord, now: number): void {
  const [was, is] = [before.run, after.run ?? (before.run === null ? null : after.lastRun)];
  expect(after.newestRun).toBeGreaterThanOrEqual(before.newestRun);
  if (before.run !== null && after.run !== null) expect(after.run.n).toBe(before.run.n);
  if (is === null) return;
  // The members do not change during a run.
  expect(is.parts.map(({ sandbox }) => sandbox)).toEqual(membersOf(after));
  if (was !== null) {
    expect(membersOf(after)).toEqual(membersOf(before));
    if (was.decision !== null) expect(is.decision).toEqual(was.decision);
  }
  expectDecided(is);
  const isOver = after.run === null;
  expect(isOver).toBe(is.decision !== null && is.parts.every(({ ended }) => ended !== null));
  if (is.decision === null) expect(now).toBeLessThan(is.until + 900_001);
  if (!isOver) expect(pendingRunRequests(after).length).toBeGreaterThan(0);
}

function expectDecided({ decision, mode, kind, parts }: Run): void {
  if (decision?.go !== true) return;
  const yes = parts.filter(({ vote }) => vote !== null && "yes" in vote).length;
  expect(parts.every(({ vote }) => vote !== null)).toBe(true);
  if (mode === "atomic" || kind === "rollback") expect(yes).toBe(parts.length);
  else expect(yes).toBeGreaterThan(0);
}

describe("a run with events in any order", () => {
  it("[PL32] is decided once, by the votes of its own members, and ends when all of them have done their part", () => {
    const seen = { committed: 0, aborted: 0, frozen: 0 };
    fc.assert(
      fc.property(fc.array(happening, { minLength: 20, maxLength: 80, size: "max" }), (history) => {
        let now = 1;
        let plan = openPlan(undefined, { tenant: "t", name: "p", createdAt: 1 });
        if (plan === undefined) throw new Error("a plan that is named is there");
        for (const sandbox of sandboxes) plan = happens(plan, { what: "put", sandbox }, now);
        for (const happening of history) {
          if (happening.what === "time") now += happening.ms;
          const before = plan;
          plan = happens(plan, happening, now);
          if (before.run !== null && (happening.what === "put" || happening.what === "remove"))
            seen.frozen++;
          if (before.run !== null && plan.run === null) {
            seen[plan.lastRun?.decision?.go === true ? "committed" : "aborted"]++;
          }
          expectRight(before, plan, now);
        }
        // A restart and responses alone must end the run.
        plan = stepRun(plan, { type: "instance" }, now);
        for (let n = 0; plan.run !== null; n++) {
          expect(n).toBeLessThan(sandboxes.length);
          for (const { sandbox } of pendingRunRequests(plan)) {
            const ended = { type: "ended", n: plan.newestRun, sandbox } as const;
            plan = stepRun(plan, { ...ended, ended: { outcome: "committed" } }, now);
          }
        }
      }),
      { numRuns: 400 },
    );
    // Every kind of end has occurred.
    expect(Math.min(seen.committed, seen.aborted, seen.frozen)).toBeGreaterThan(10);
  });
});
