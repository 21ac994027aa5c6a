import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ticketOf } from "../../../../src/core/plan/participant/participant.ts";
import { limits } from "../../../../src/protocol/limits.ts";
import { MemberDesk } from "./participant-harness.ts";

/** A member whose run has come as far as this. */
function desk(at: "joined" | "holding" | "held" | "prepared" | "committed", run = 1): MemberDesk {
  const desk = new MemberDesk();
  desk.join(0);
  if (at === "joined") return desk;
  desk.hold(run);
  if (at === "holding") return desk;
  desk.held(run);
  if (at === "held") return desk;
  desk.saved(run);
  if (at === "prepared") return desk;
  desk.finish(run, "commit");
  return desk;
}

describe("the seat of a member", () => {
  it("[PL50] is one plan's: another is refused, and to join or leave again changes nothing", () => {
    const one = new MemberDesk();
    expect([one.leave(), one.join(3), one.join(3), one.join(2)]).toEqual(
      Array.from({ length: 4 }, () => "done"),
    );
    expect(one.seat).toMatchObject({ run: 3 });
    expect([one.join(9, "other"), one.hold(9, "other")]).toEqual(["in_other_plan", "stale_run"]);
    expect(one.leave("other")).toBe("done");
    expect(one.seat).toMatchObject({ plan: "release", run: 3 });
    expect([one.leave(), one.leave()]).toEqual(["done", "done"]);
    expect(one.tells).toEqual(["joined", "left"]);
  });

  it("[PL50] one that leaves in the middle of a run leaves nothing of it", () => {
    for (const at of ["holding", "held", "prepared", "committed"] as const) {
      const one = desk(at);
      one.leave();
      expect(one.seat).toBeNull();
      expect([...one.leases, ...one.checkpoints.keys(), ...one.faults]).toEqual([]);
      expect([one.held(1), one.saved(1), one.prepare(1)]).toEqual(
        Array.from({ length: 3 }, () => "stale_run"),
      );
      expect([...one.leases, ...one.checkpoints.keys()]).toEqual([]);
    }
  });

  it("[PL51] a run goes from hold to commit, and each step may be asked again", () => {
    const one = desk("joined");
    expect([one.hold(1), one.hold(1)]).toEqual(["ticket", "ticket"]);
    expect(one.prepare(1)).toBe("lease_lost");
    expect([one.held(1), one.hold(1), one.held(1)]).toEqual(["done", "ticket", "done"]);
    expect(one.leases.size).toBe(1);
    expect([one.prepare(1), one.saved(1), one.prepare(1)]).toEqual(["ticket", "vote", "vote"]);
    expect([one.finish(1, "commit"), one.finish(1, "commit"), one.finish(1, "abort")]).toEqual(
      Array.from({ length: 3 }, () => "committed"),
    );
    expect(one.leases.size).toBe(0);
    expect([...one.checkpoints.keys()]).toEqual([one.committed]);
    expect(one.tells).toEqual(["joined", "prepared", "committed"]);
  });

  it("[PL51] what is late finds the door shut: after the end of its run, and after a later one", () => {
    for (const close of [
      (one: MemberDesk) => one.finish(1, "abort"),
      (one: MemberDesk) => one.finish(2, "abort"),
      (one: MemberDesk) => one.hold(2),
      (one: MemberDesk) => one.join(2),
    ]) {
      for (const at of ["joined", "holding", "held", "prepared"] as const) {
        const one = desk(at);
        close(one);
        const { seat } = one;
        expect([one.hold(1), one.held(1), one.prepare(1), one.saved(1)]).toEqual(
          Array.from({ length: 4 }, () => "stale_run"),
        );
        expect(one.seat).toBe(seat);
        expect([...one.leases, ...one.checkpoints.keys()]).toEqual([]);
      }
    }
  });

  it("[PL51] an end of a run that was never heard of is an abort, and one of before is stale", () => {
    const one = desk("joined");
    expect(one.finish(7, "abort")).toBe("aborted");
    expect(one.finish(7, "abort")).toBe("aborted");
    expect([one.hold(7), one.finish(6, "abort"), one.finish(6, "commit")]).toEqual(
      Array.from({ length: 3 }, () => "stale_run"),
    );
    expect(one.hold(8)).toBe("ticket");
    expect(one.tells).toEqual(["joined"]);
  });

  it("[PL51] nobody who has prepared nothing is told as committed", () => {
    for (const at of ["joined", "holding", "held"] as const) {
      const one = desk(at);
      const committed = one.finish(1, "commit");
      expect(committed).toBe("failed: stale_run");
      expect(one.committed).toBeUndefined();
      expect(one.faults).toEqual([]);
    }
    const nobody = new MemberDesk();
    expect([nobody.finish(1, "abort"), nobody.finish(1, "commit")]).toEqual([
      "aborted",
      "failed: stale_run",
    ]);
    expect(nobody.seat).toBeNull();
  });

  it("[PL52] each commit gives up the one before, an abort what it had prepared", () => {
    const one = desk("committed");
    const first = one.committed;
    one.hold(2);
    one.held(2);
    one.saved(2);
    expect(one.checkpoints.size).toBe(2);
    expect(one.finish(2, "abort")).toBe("aborted");
    expect([...one.checkpoints.keys()]).toEqual([first]);
    one.hold(3);
    one.held(3);
    one.saved(3);
    one.finish(3, "commit");
    expect(one.committed).not.toBe(first);
    expect([...one.checkpoints.keys()]).toEqual([one.committed]);
    expect(one.seat?.committed?.run).toBe(3);
  });

  it("[PL62] a rollback starts from the last commit until that has come up, a few times at most", () => {
    const held = (run: number) => {
      const one = desk("committed");
      one.hold(run);
      one.held(run);
      expect(one.looked(run)).toBe("vote");
      return one;
    };
    const good = held(2);
    expect([good.finish(2, "roll_back"), good.finish(2, "roll_back")]).toEqual(["restore", "wait"]);
    good.came("failed");
    expect(good.finish(2, "roll_back")).toBe("restore");
    good.came("running");
    expect(good.finish(2, "roll_back")).toBe("rolled_back");
    expect(good.tells.at(-1)).toBe("rolled_back");
    expect(good.faults).toEqual([]);
    const bad = held(2);
    for (let n = 0; n < limits.planRestoreTriesMax; n++) {
      expect(bad.finish(2, "roll_back")).toBe("restore");
      bad.came("failed");
    }
    expect(bad.finish(2, "roll_back")).toBe("failed: start_failed");
    expect(bad.leases.size).toBe(0);
    const never = desk("held");
    never.looked(1);
    expect(never.finish(1, "roll_back")).toBe("skipped");
  });

  /** Mostly of the run that is open, else of a later or an earlier one. */
  const by = fc.constantFrom(...Array.from({ length: 18 }, () => 0), 1, -1);
  const move = fc.oneof(
    {
      weight: 30,
      arbitrary: fc.record({
        do: fc.constant("hold" as const),
        by: fc.constantFrom(0, 0, 1, -1),
      }),
    },
    {
      weight: 60,
      arbitrary: fc.record({ do: fc.constantFrom(...(["held", "saved"] as const)), by }),
    },
    {
      weight: 25,
      arbitrary: fc.record({
        do: fc.constant("finish" as const),
        by,
        verdict: fc.constantFrom(...(["commit", "commit", "abort", "roll_back"] as const)),
      }),
    },
    {
      weight: 10,
      arbitrary: fc.record({ do: fc.constantFrom(...(["looked", "prepare"] as const)), by }),
    },
    {
      weight: 5,
      arbitrary: fc.record({ do: fc.constantFrom(...(["join", "fail"] as const)), by }),
    },
    {
      weight: 5,
      arbitrary: fc.record({
        do: fc.constant("came" as const),
        name: fc.constantFrom(...(["running", "failed"] as const)),
      }),
    },
    { weight: 1, arbitrary: fc.record({ do: fc.constant("leave" as const) }) },
  );

  it("[PL52] in whatever order steps come: only a run's own tree is committed, and its end leaves nothing else", () => {
    let committed = 0;
    let stale = 0;
    fc.assert(
      fc.property(fc.array(move, { minLength: 40, maxLength: 80 }), (moves) => {
        const one = desk("joined");
        const ends = new Map<number, string>();
        for (const step of moves) {
          const before = one.seat;
          const run = "by" in step ? Math.max(1, (before?.run ?? 0) + step.by) : 0;
          let said = "";
          if (step.do === "came") one.came(step.name);
          else if (step.do === "leave") {
            one.leave();
            ends.clear();
          } else if (step.do === "finish") said = one.finish(run, step.verdict);
          else said = one[step.do](run);
          expect(one.faults).toEqual([]);
          if (one.seat !== null && before !== null) {
            expect(one.seat.run).toBeGreaterThanOrEqual(before.run);
          }
          if (said === "stale_run") {
            stale += 1;
            expect(one.seat).toBe(before);
          }
          if (one.committed !== undefined && one.committed !== before?.committed?.checkpoint) {
            committed += 1;
            expect(step).toMatchObject({ do: "finish", verdict: "commit" });
            expect(one.checkpoints.get(one.committed)).toBe(one.seat?.run);
            expect(one.seat?.committed?.run).toBe(one.seat?.run);
          }
          const isEnd = step.do === "finish" && !["restore", "wait", "stale_run"].includes(said);
          if (!isEnd || one.seat === null) continue;
          expect(ends.get(run) ?? said).toBe(said);
          ends.set(run, said);
          // What was told of an earlier one is told again; a later one may be open.
          if (run !== one.seat.run) continue;
          expect(ticketOf(one.seat)).toBeUndefined();
          expect(one.leases.size).toBe(0);
          expect([...one.checkpoints.keys()]).toEqual(
            one.committed === undefined ? [] : [one.committed],
          );
        }
      }),
      { numRuns: 1_000 },
    );
    expect(committed).toBeGreaterThan(100);
    expect(stale).toBeGreaterThan(1_000);
  });
});
