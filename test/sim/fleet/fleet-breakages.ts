/** Faults that a fleet history can contain on purpose. The checks must find each of them, or they prove nothing. */
import { PlanActor } from "../../../src/objects/plan/actor.ts";
import type { ParticipantPort } from "../../../src/objects/plan/ports.ts";
import type { SandboxActor } from "../../../src/objects/sandbox/actor.ts";
import type { AnyBreakage } from "../simulation.ts";

const found = {
  /** Members may be added, replaced and removed while a run is open. */
  "members are not frozen": ["a run ends"],
  /** A restarted plan continues as if it had decided to commit. */
  "an undecided run is committed": ["one run, one decision"],
  /** The plan sends its decision and the creation of members before its own rows are on disk. */
  "requests do not wait for rows": ["one run, one decision", "nothing is made for nobody"],
  /** A participant accepts steps of runs that have ended. */
  "members forget which runs have ended": ["no lease is held forever"],
  /** The lease of a held member ends with its time. */
  "a held lease expires": ["a plan can be used again"],
  /** The Directory applies reports in the order in which they arrive. */
  "reports have no order": ["lists say what is"],
  /** A decision that did not reach a participant is not sent again. */
  "finishing is tried once": [
    "no lease is held forever",
    "plans and members agree",
    "all or nothing",
  ],
  /** A sandbox ends for its successor even if its lease is held. */
  "a lease does not stop a replacement": ["nobody's lease ends for another sandbox"],
} as const;

export type FleetBreakage = keyof typeof found;
export const fleetBreakages = Object.keys(found) as FleetBreakage[];

/** The checks that must find each fault: finding it by another one is no proof. */
export const fleetFoundBy: Readonly<Record<FleetBreakage, readonly string[]>> = found;

/** The real plan, unless a fault replaces it. */
export function planActor(
  breakage: AnyBreakage | undefined,
  ...made: ConstructorParameters<typeof PlanActor>
): PlanActor {
  if (breakage === "members are not frozen") return new UnfrozenPlan(...made);
  if (breakage === "an undecided run is committed") return new CommittingPlan(...made);
  return new PlanActor(...made);
}

class UnfrozenPlan extends PlanActor {
  override get current() {
    return { ...super.current, run: null };
  }

  override commit(...[after, extras]: Parameters<PlanActor["commit"]>): void {
    const open = this.record?.run ?? null;
    const isOver = open !== null && after.lastRun?.n === open.n;
    super.commit(after.run === null && !isOver ? { ...after, run: open } : after, extras);
  }
}

class CommittingPlan extends PlanActor {
  override resume(): void {
    const run = this.record?.run ?? null;
    if (this.record !== undefined && run !== null && run.decision === null) {
      super.commit({ ...this.record, run: { ...run, decision: { go: true, at: 0 } } });
    }
    super.resume();
  }
}

/** Makes a participant forget which runs have ended. */
export function breakParticipant(
  breakage: AnyBreakage | undefined,
  actor: SandboxActor,
  run: number,
): void {
  const participant = actor.existing?.participant;
  if (breakage !== "members forget which runs have ended" || participant == null) return;
  if (participant.phase.name === "over" && participant.run >= run) {
    actor.commit({ participant: { ...participant, run: run - 1, last: null } }, [], "forgets");
  }
}

export function breakLease(breakage: AnyBreakage | undefined, actor: SandboxActor): void {
  const state = actor.existing?.lease.state;
  if (breakage !== "a held lease expires" || state?.name !== "held") return;
  const { pinned: _, ...ends } = { ...state, expiresAt: actor.now() + 1_000 };
  actor.commit({ lease: { ...actor.facts.lease, state: ends } }, [], "is not pinned");
}

/** Takes a missing response for success. */
export function finishOnce(
  breakage: AnyBreakage | undefined,
  member: ParticipantPort,
): ParticipantPort {
  if (breakage !== "finishing is tried once") return member;
  return {
    ...member,
    finish: (caller, decision) =>
      member.finish(caller, decision).catch(() => ({
        ok: { outcome: decision === "commit" ? "committed" : "aborted" },
      })),
  };
}
