/**
 * Owns what comes of a step of a plan at its member: the seat, the answer, what is let go and what is told, together;
 * and whether a step comes too late. Does not own the steps (seat-step.ts, seat-finish.ts).
 */
import { BerthError } from "../../../protocol/errors.ts";
import type { EventData } from "../../../protocol/event.ts";
import type { Ended, Vote } from "../record.ts";
import { freedBy, type Needed, type Seat, type SeatPhase } from "./participant.ts";

export type SeatReply =
  | { done: true }
  /** By which the run has, or is to get, its lease. */
  | { ticket: string }
  | { vote: Vote }
  | { ended: Ended }
  /** First its files become those of this checkpoint. */
  | { restore: string }
  /** The same, but not before this time: what was in its way has to pass first. */
  | { later: number }
  /** They are about to. */
  | { wait: true }
  | { refuse: BerthError };

export type SeatMove = {
  seat: Seat | null;
  reply: SeatReply;
  /** What nobody needs any more. */
  frees: Needed;
  tells: EventData[];
};

/** The plan speaks of a later run, so the one that is open here is over for it. */
export function overtaken(seat: Seat, run: number, phase: SeatPhase): SeatMove {
  return { ...freed(seat), seat: { ...seat, run, phase } };
}

/** The same, without what its run holds. */
export function freed(seat: Seat): SeatMove {
  return { ...move(seat, { done: true }), frees: freedBy(seat.phase) };
}

export function move(seat: Seat | null, reply: SeatReply): SeatMove {
  return { seat, reply, frees: { tickets: [], checkpoints: [] }, tells: [] };
}

export function staleStep(seat: Seat | null, plan: string, run: number): BerthError | undefined {
  if (seat === null || seat.plan !== plan) return notMember(plan);
  return isOver(seat, run) ? staleRun(seat.run) : undefined;
}

export function isOver(seat: Seat, run: number): boolean {
  return run < seat.run || (run === seat.run && seat.phase.name === "over");
}

export function staleRun(run: number): BerthError {
  return new BerthError("stale_run", `The run is over here; the newest that was heard is ${run}.`, {
    facts: { run },
  });
}

export function staleMove(plan: string, move: number): BerthError {
  return new BerthError("stale_run", `The plan ${plan} has changed its members since.`, {
    facts: { move },
  });
}

export function notMember(plan: string): BerthError {
  return new BerthError("stale_run", `The sandbox is no member of the plan ${plan}.`);
}
