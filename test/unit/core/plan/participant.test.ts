import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ticketOf } from "../../../../src/core/plan/participant/participant.ts";
import { limits } from "../../../../src/protocol/limits.ts";
import { ParticipantHarness } from "./participant-harness.ts";

/** A member whose run has come as far as this. */
function harness(
  phase: "joined" | "holding" | "held" | "prepared" | "committed",
  run = 1,
): ParticipantHarness {
  const harness = new ParticipantHarness();
  harness.join(0);
  if (phase === "joined") return harness;
  harness.hold(run);
  if (phase === "holding") return harness;
  harness.held(run);
  if (phase === "held") return harness;
  harness.preparedCommit(run);
  if (phase === "prepared") return harness;
  harness.finish(run, "commit");
  return harness;
}

describe("a plan's participant", () => {
  it("[PL50] belongs to one plan: another is refused, and joining or leaving again changes nothing", () => {
    const member = new ParticipantHarness();
    expect([member.leave(), member.join(3), member.join(3), member.join(2)]).toEqual(
      Array(4).fill("done"),
    );
    expect(member.participant).toMatchObject({ run: 3 });
    expect([member.join(9, "other"), member.hold(9, "other")]).toEqual([
      "in_other_plan",
      "stale_run",
    ]);
    expect(member.leave("other")).toBe("done");
    expect(member.participant).toMatchObject({ plan: "release", run: 3 });
    expect([member.leave(), member.leave()]).toEqual(["done", "done"]);
    expect(member.eventNames).toEqual(["joined", "left"]);
  });

  it("[PL50] releases everything of a run when it leaves in the middle of it", () => {
    for (const phase of ["holding", "held", "prepared", "committed"] as const) {
      const member = harness(phase);
      member.leave();
      expect(member.participant).toBeNull();
      expect([...member.leases, ...member.checkpoints.keys(), ...member.leaks]).toEqual([]);
      expect([member.held(1), member.preparedCommit(1), member.prepare(1)]).toEqual(
        Array(3).fill("stale_run"),
      );
      expect([...member.leases, ...member.checkpoints.keys()]).toEqual([]);
    }
  });

  it("[PL51] goes from hold to commit, and each step may be repeated", () => {
    const member = harness("joined");
    expect([member.hold(1), member.hold(1)]).toEqual(["ticket", "ticket"]);
    expect(member.prepare(1)).toBe("lease_lost");
    expect([member.held(1), member.hold(1), member.held(1)]).toEqual(["done", "ticket", "done"]);
    expect(member.leases.size).toBe(1);
    expect([member.prepare(1), member.preparedCommit(1), member.prepare(1)]).toEqual([
      "ticket",
      "vote",
      "vote",
    ]);
    expect([
      member.finish(1, "commit"),
      member.finish(1, "commit"),
      member.finish(1, "abort"),
    ]).toEqual(Array(3).fill("committed"));
    expect(member.leases.size).toBe(0);
    expect([...member.checkpoints.keys()]).toEqual([member.committed]);
    expect(member.eventNames).toEqual(["joined", "prepared", "committed"]);
  });

  it("[PL51] refuses late steps: after the end of their run, and after a later run", () => {
    for (const close of [
      (member: ParticipantHarness) => member.finish(1, "abort"),
      (member: ParticipantHarness) => member.finish(2, "abort"),
      (member: ParticipantHarness) => member.hold(2),
      (member: ParticipantHarness) => member.join(2),
    ]) {
      for (const phase of ["joined", "holding", "held", "prepared"] as const) {
        const member = harness(phase);
        close(member);
        const { participant } = member;
        expect([
          member.hold(1),
          member.held(1),
          member.prepare(1),
          member.preparedCommit(1),
        ]).toEqual(Array(4).fill("stale_run"));
        expect(member.participant).toBe(participant);
        expect([...member.leases, ...member.checkpoints.keys()]).toEqual([]);
      }
    }
  });

  it("[PL51] treats the end of an unknown run as an abort, and that of an earlier run as stale", () => {
    const member = harness("joined");
    expect(member.finish(7, "abort")).toBe("aborted");
    expect(member.finish(7, "abort")).toBe("aborted");
    expect([member.hold(7), member.finish(6, "abort"), member.finish(6, "commit")]).toEqual(
      Array(3).fill("stale_run"),
    );
    expect(member.hold(8)).toBe("ticket");
    expect(member.eventNames).toEqual(["joined"]);
  });

  it("[PL51] never reports a commit without a prepared checkpoint", () => {
    for (const phase of ["joined", "holding", "held"] as const) {
      const member = harness(phase);
      const committed = member.finish(1, "commit");
      expect(committed).toBe("failed: stale_run");
      expect(member.committed).toBeUndefined();
      expect(member.leaks).toEqual([]);
    }
    const nobody = new ParticipantHarness();
    expect([nobody.finish(1, "abort"), nobody.finish(1, "commit")]).toEqual([
      "aborted",
      "failed: stale_run",
    ]);
    expect(nobody.participant).toBeNull();
  });

  it("[PL52] releases the former checkpoint with each commit, and the prepared one with an abort", () => {
    const member = harness("committed");
    const first = member.committed;
    member.hold(2);
    member.held(2);
    member.preparedCommit(2);
    expect(member.checkpoints.size).toBe(2);
    expect(member.finish(2, "abort")).toBe("aborted");
    expect([...member.checkpoints.keys()]).toEqual([first]);
    member.hold(3);
    member.held(3);
    member.preparedCommit(3);
    member.finish(3, "commit");
    expect(member.committed).not.toBe(first);
    expect([...member.checkpoints.keys()]).toEqual([member.committed]);
    expect(member.participant?.committed?.run).toBe(3);
  });

  it("[PL62] repeats the start of a rollback from the last commit, a few times at most", () => {
    const held = (run: number) => {
      const member = harness("committed");
      member.hold(run);
      member.held(run);
      expect(member.preparedRollback(run)).toBe("vote");
      return member;
    };
    const good = held(2);
    expect([good.finish(2, "roll_back"), good.finish(2, "roll_back")]).toEqual(["restore", "wait"]);
    good.restoreEnded("failed");
    expect(good.finish(2, "roll_back")).toBe("restore");
    good.restoreEnded("running");
    expect(good.finish(2, "roll_back")).toBe("rolled_back");
    expect(good.eventNames.at(-1)).toBe("rolled_back");
    expect(good.leaks).toEqual([]);
    const bad = held(2);
    for (let n = 0; n < limits.planRestoreTriesMax; n++) {
      expect(bad.finish(2, "roll_back")).toBe("restore");
      bad.restoreEnded("failed");
    }
    expect(bad.finish(2, "roll_back")).toBe("failed: start_failed");
    expect(bad.leases.size).toBe(0);
    const never = harness("held");
    never.preparedRollback(1);
    expect(never.finish(1, "roll_back")).toBe("skipped");
  });

  /** Mostly steps of the open run, else of a later or an earlier one. */
  const by = fc.constantFrom(...Array.from({ length: 18 }, () => 0), 1, -1);
  /** One of these steps, with this weight. */
  const steps = <Step extends string, Fields>(
    weight: number,
    names: Step[],
    fields: { [Name in keyof Fields]: fc.Arbitrary<Fields[Name]> },
  ) => {
    const parts = fc.tuple(fc.constantFrom(...names), fc.record<Fields>(fields));
    return { weight, arbitrary: parts.map(([name, rest]) => ({ do: name, ...rest })) };
  };
  const move = fc.oneof(
    steps(30, ["hold"], { by: fc.constantFrom(0, 0, 1, -1) }),
    steps(60, ["held", "preparedCommit"], { by }),
    steps(25, ["finish"], {
      by,
      verdict: fc.constantFrom("commit" as const, "commit", "abort", "roll_back"),
    }),
    steps(10, ["preparedRollback", "prepare"], { by }),
    steps(5, ["join", "fail"], { by }),
    steps(5, ["restoreEnded"], { name: fc.constantFrom("running", "failed") }),
    steps(1, ["leave"], {}),
  );

  it("[PL52] with steps in any order: commits only the checkpoint of the same run, and its end leaves nothing else", () => {
    let committed = 0;
    let stale = 0;
    fc.assert(
      fc.property(fc.array(move, { minLength: 40, maxLength: 80 }), (moves) => {
        const member = harness("joined");
        const ends = new Map<number, string>();
        for (const step of moves) {
          const before = member.participant;
          const run = "by" in step ? Math.max(1, (before?.run ?? 0) + step.by) : 0;
          let said = "";
          if (step.do === "restoreEnded") member.restoreEnded(step.name);
          else if (step.do === "leave") {
            member.leave();
            ends.clear();
          } else if (step.do === "finish") said = member.finish(run, step.verdict);
          else said = member[step.do](run);
          expect(member.leaks).toEqual([]);
          if (member.participant !== null && before !== null) {
            expect(member.participant.run).toBeGreaterThanOrEqual(before.run);
          }
          if (said === "stale_run") {
            stale += 1;
            expect(member.participant).toBe(before);
          }
          if (
            member.committed !== undefined &&
            member.committed !== before?.committed?.checkpoint
          ) {
            committed += 1;
            expect(step).toMatchObject({ do: "finish", verdict: "commit" });
            expect(member.checkpoints.get(member.committed)).toBe(member.participant?.run);
            expect(member.participant?.committed?.run).toBe(member.participant?.run);
          }
          const isEnd = step.do === "finish" && !["restore", "wait", "stale_run"].includes(said);
          if (!isEnd || member.participant === null) continue;
          expect(ends.get(run) ?? said).toBe(said);
          ends.set(run, said);
          // The result of an earlier run is repeated; a later run may be open.
          if (run !== member.participant.run) continue;
          expect(ticketOf(member.participant)).toBeUndefined();
          expect(member.leases.size).toBe(0);
          expect([...member.checkpoints.keys()]).toEqual(
            member.committed === undefined ? [] : [member.committed],
          );
        }
      }),
      { numRuns: 1_000 },
    );
    expect(committed).toBeGreaterThan(100);
    expect(stale).toBeGreaterThan(1_000);
  });
});
