/**
 * Owns what a history of many objects can break on purpose. Each must be found: else it proves nothing.
 */

import { PlanActor } from "../../../src/objects/plan/actor.ts";
import type { ParticipantPort } from "../../../src/objects/plan/ports.ts";
import type { SandboxActor } from "../../../src/objects/sandbox/actor.ts";

const found = {
  /** Members may be added, replaced and removed while a run is open. */
  "members are not frozen": ["a run ends"],
  /** A fresh instance of the plan goes on as if it had decided to commit. */
  "an undecided run is committed": ["one run, one decision"],
  /** The plan tells its members before its decision is on disk, and has members made before it knows of them. */
  "what is told does not wait": ["one run, one decision", "nothing is made for nobody"],
  /** A member takes steps of runs that are over. */
  "members forget which runs are over": ["nobody is held for ever"],
  /** The lease of a held member ends with its time. */
  "a held lease expires": ["a plan can be used again"],
  /** The Directory takes reports in the order in which they come. */
  "reports have no order": ["lists say what is"],
  /** Whoever could not be told what was decided is not told again. */
  "finishing is tried once": [
    "nobody is held for ever",
    "plans and members agree",
    "all or nothing",
  ],
  /** Whoever holds its lease, a sandbox ends for its successor. */
  "who is replaced is not asked": ["nobody's lease ends for another sandbox"],
} as const;

export type FleetBreakage = keyof typeof found;
export const fleetBreakages = Object.keys(found) as FleetBreakage[];

/** The rules by which each is found: one that is broken by something else is no proof. */
export const fleetFoundBy: Readonly<Record<FleetBreakage, readonly string[]>> = found;

/** The real one, unless it is to be broken. */
export function planActor(
  breakage: FleetBreakage | undefined,
  ...made: ConstructorParameters<typeof PlanActor>
): PlanActor {
  if (breakage === "members are not frozen") return new Unfrozen(...made);
  if (breakage === "an undecided run is committed") return new Hopeful(...made);
  return new PlanActor(...made);
}

class Unfrozen extends PlanActor {
  override get current() {
    return { ...super.current, run: null };
  }

  override commit(...[after, beside]: Parameters<PlanActor["commit"]>): void {
    const open = this.record?.run ?? null;
    const isOver = open !== null && after.lastRun?.n === open.n;
    super.commit(after.run === null && !isOver ? { ...after, run: open } : after, beside);
  }
}

class Hopeful extends PlanActor {
  override resume(): void {
    const run = this.record?.run ?? null;
    if (this.record !== undefined && run !== null && run.decision === null) {
      super.commit({ ...this.record, run: { ...run, decision: { go: true, at: 0 } } });
    }
    super.resume();
  }
}

/** What a question of a plan finds in a broken member. */
export function breakSeat(
  breakage: FleetBreakage | undefined,
  actor: SandboxActor,
  run: number,
): void {
  const seat = actor.existing?.participant;
  if (breakage !== "members forget which runs are over" || seat == null) return;
  if (seat.phase.name === "over" && seat.run >= run) {
    actor.commit({ participant: { ...seat, run: run - 1, last: null } }, [], "forgets");
  }
}

export function breakLease(breakage: FleetBreakage | undefined, actor: SandboxActor): void {
  const state = actor.existing?.lease.state;
  if (breakage !== "a held lease expires" || state?.name !== "held") return;
  const { pinned: _, ...ends } = { ...state, expiresAt: actor.now() + 1_000 };
  actor.commit({ lease: { ...actor.facts.lease, state: ends } }, [], "is not pinned");
}

/** Whoever does not answer is taken to have done it. */
export function once(
  breakage: FleetBreakage | undefined,
  member: ParticipantPort,
): ParticipantPort {
  if (breakage !== "finishing is tried once") return member;
  return {
    ...member,
    finish: (asking, decision) =>
      member.finish(asking, decision).catch(() => ({
        ok: { outcome: decision === "commit" ? "committed" : "aborted" },
      })),
  };
}
