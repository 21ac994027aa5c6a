/**
 * Owns the end of a run at its member: what was decided is done once, and answered in the same way ever after.
 * Does not own the steps before it (seat-step.ts).
 */
import type { EventData } from "../../../protocol/event.ts";
import { limits } from "../../../protocol/limits.ts";
import type { Failure } from "../../../protocol/plan.ts";
import type { Verdict } from "../pending.ts";
import type { Ended } from "../record.ts";
import { committedOf, type Seat, type SeatPhase } from "./participant.ts";
import {
  freed,
  isOver,
  move,
  overtaken,
  type SeatMove,
  type SeatReply,
  staleRun,
} from "./transition.ts";

export type Finish = { type: "finish"; plan: string; run: number; verdict: Verdict; now: number };
/** It cannot be done, and never will. */
export type Fail = { type: "fail"; plan: string; run: number; error: Failure };
/** In the same step in which the sandbox starts from its last commit. */
export type Restoring = { type: "restoring"; run: number; startId: string };
/** Its lease was taken away since it was decided: it queues for it anew, by this ticket. */
export type Requeue = { type: "requeue"; run: number; ticket: string };

export function finish(seat: Seat | null, { plan, run, verdict, now }: Finish): SeatMove {
  const isAbort = verdict === "abort";
  const nothingHere: Ended = isAbort
    ? { outcome: "aborted" }
    : { outcome: "failed", error: nothingPrepared };
  // Asked for ever it would keep the plan from its end.
  if (seat === null || seat.plan !== plan) return move(seat, { ended: nothingHere });
  const known = endedBefore(seat, run);
  if (known !== undefined) return move(seat, known);
  // Never heard of: whatever of it is still on its way finds the door shut.
  if (run > seat.run) return closed(overtaken(seat, run, { name: "over" }), nothingHere);
  if (isAbort) return closed(freed(seat), { outcome: "aborted" });
  return verdict === "commit" ? commit(seat) : rollBack(seat, now);
}

function commit(seat: Seat): SeatMove {
  const { phase, run } = seat;
  if (phase.name !== "prepared" || phase.artefact === null) {
    return closed(freed(seat), { outcome: "failed", error: nothingPrepared });
  }
  const committed = { checkpoint: phase.artefact, run };
  const frees = { tickets: [phase.ticket], checkpoints: committedOf(seat) };
  return closed(
    { ...move({ ...seat, committed }, { done: true }), frees },
    { outcome: "committed" },
  );
}

function rollBack(seat: Seat, now: number): SeatMove {
  const { phase, committed } = seat;
  if (phase.name === "prepared" && phase.artefact === null) {
    return committed === null
      ? closed(freed(seat), { outcome: "skipped" })
      : move(seat, { restore: committed.checkpoint });
  }
  if (phase.name !== "restoring" || committed === null) {
    return closed(freed(seat), { outcome: "failed", error: nothingPrepared });
  }
  const { came, tries } = phase;
  if (came === null) return move(seat, { wait: true });
  if (came === "restored") return closed(freed(seat), { outcome: "rolled_back" });
  if (came.passedAt !== undefined) {
    const again = came.passedAt + restorePauseMs(phase.waits ?? 0);
    return move(seat, now < again ? { later: again } : { restore: committed.checkpoint });
  }
  if (tries < limits.planRestoreTriesMax) return move(seat, { restore: committed.checkpoint });
  return closed(freed(seat), { outcome: "failed", error: notBroughtBack(came.failed, tries) });
}

export function fail(seat: Seat | null, { plan, run, error }: Fail): SeatMove {
  const ended: Ended = { outcome: "failed", error };
  if (seat === null || seat.plan !== plan) return move(seat, { ended });
  const known = endedBefore(seat, run);
  if (known !== undefined) return move(seat, known);
  return closed(run > seat.run ? overtaken(seat, run, { name: "over" }) : freed(seat), ended);
}

export function restoring(seat: Seat | null, { run, startId }: Restoring): SeatMove {
  const phase = seat?.phase;
  if (seat?.run !== run || (phase?.name !== "prepared" && phase?.name !== "restoring")) {
    throw new Error("only a prepared member is restored");
  }
  const { ticket } = phase;
  const next: SeatPhase = { name: "restoring", ticket, startId, ...triesOf(phase), came: null };
  return move({ ...seat, phase: next }, { wait: true });
}

export function requeue(seat: Seat | null, { run, ticket }: Requeue): SeatMove {
  const phase = seat?.phase;
  if (seat?.run !== run || (phase?.name !== "prepared" && phase?.name !== "restoring")) {
    throw new Error("only what is decided is queued for again");
  }
  return move({ ...seat, phase: { ...phase, ticket } }, { ticket });
}

/** What was only in its way just then is not held against the commit. */
function triesOf(phase: SeatPhase): { tries: number; waits?: number } {
  if (phase.name !== "restoring") return { tries: 1 };
  const { tries, waits = 0, came } = phase;
  const passed = came !== null && came !== "restored" && came.passedAt !== undefined;
  return passed ? { tries, waits: waits + 1 } : { tries: tries + 1, waits };
}

function restorePauseMs(waits: number): number {
  return Math.min(limits.planRestorePauseMs * 2 ** waits, limits.planRestorePauseMaxMs);
}

/** A run that is over here answers as it did; one of before is not answered any more. */
function endedBefore(seat: Seat, run: number): SeatReply | undefined {
  if (seat.last?.run === run) return { ended: seat.last.ended };
  return isOver(seat, run) ? { refuse: staleRun(seat.run) } : undefined;
}

/** With the run what it has left is over too; that is in the move already. */
function closed({ seat, frees }: SeatMove, ended: Ended): SeatMove {
  if (seat === null) throw new Error("only a member ends a run");
  const over: Seat = { ...seat, phase: { name: "over" }, last: { run: seat.run, ended } };
  return { seat: over, reply: { ended }, frees, tells: toldEnd(seat, ended) };
}

function toldEnd({ plan, run, phase, committed }: Seat, { outcome }: Ended): EventData[] {
  const checkpoint = committed === null ? {} : { checkpoint: committed.checkpoint };
  switch (outcome) {
    case "aborted":
      return phase.name === "over" ? [] : [{ type: "plan", what: outcome, plan, commit: run }];
    case "committed":
    case "rolled_back":
      return [{ type: "plan", what: outcome, plan, commit: run, ...checkpoint }];
    default:
      return [];
  }
}

const nothingPrepared: Failure = {
  code: "stale_run",
  message: "The sandbox had prepared nothing for this run.",
};

function notBroughtBack(reason: string, tries: number): Failure {
  return {
    code: "start_failed",
    message: `The sandbox did not start from its last commit in ${tries} tries: ${reason}.`,
  };
}
