/**
 * Owns the moves of a member of a plan: joined, held, prepared. Each step names its run, whose number is its fence.
 * Does not own how a run ends (seat-finish.ts), nor leases and trees: a move says which of them are let go.
 */
import { leaseLost } from "../../lease/refusals.ts";
import { inPlan } from "../membership.ts";
import type { Vote } from "../record.ts";
import {
  type Fail,
  type Finish,
  fail,
  finish,
  type Requeue,
  type Restoring,
  requeue,
  restoring,
} from "./finish.ts";
import { neededBy, type Seat, type SeatPhase, ticketOf } from "./participant.ts";
import {
  move,
  notMember,
  overtaken,
  type SeatMove,
  type SeatReply,
  staleStep,
} from "./transition.ts";

export type SeatEvent =
  | { type: "join"; plan: string; run: number }
  | { type: "leave"; plan: string }
  /** `ticket`: for the case that it begins now. */
  | { type: "hold"; plan: string; run: number; ticket: string }
  /** The lease is this run's. */
  | { type: "held"; plan: string; run: number; ticket: string }
  | { type: "prepare"; plan: string; run: number }
  /** All that is slow is done. */
  | {
      type: "prepared";
      plan: string;
      run: number;
      ticket: string;
      vote: Vote;
      artefact: string | null;
    }
  | Finish
  | Fail
  | Restoring
  | Requeue;

export function stepSeat(seat: Seat | null, event: SeatEvent): SeatMove {
  switch (event.type) {
    case "join":
      return join(seat, event.plan, event.run);
    case "leave":
      return leave(seat, event.plan);
    case "hold":
      return hold(seat, event);
    case "held":
      return held(seat, event);
    case "prepare":
      return move(seat, mayPrepare(seat, event.plan, event.run));
    case "prepared":
      return prepared(seat, event);
    case "finish":
      return finish(seat, event);
    case "fail":
      return fail(seat, event);
    case "restoring":
      return restoring(seat, event);
    case "requeue":
      return requeue(seat, event);
  }
}

function join(seat: Seat | null, plan: string, run: number): SeatMove {
  if (seat === null) {
    const joined: Seat = { plan, run, phase: { name: "over" }, committed: null, last: null };
    return { ...move(joined, { done: true }), tells: [{ type: "plan", what: "joined", plan }] };
  }
  if (seat.plan !== plan) return move(seat, { refuse: inPlan(seat.plan) });
  return run > seat.run ? overtaken(seat, run, { name: "over" }) : move(seat, { done: true });
}

function leave(seat: Seat | null, plan: string): SeatMove {
  if (seat === null || seat.plan !== plan) return move(seat, { done: true });
  return {
    seat: null,
    reply: { done: true },
    frees: neededBy(seat),
    tells: [{ type: "plan", what: "left", plan }],
  };
}

type Hold = Extract<SeatEvent, { type: "hold" }>;

function hold(seat: Seat | null, { plan, run, ticket }: Hold): SeatMove {
  const stale = staleStep(seat, plan, run);
  if (seat === null || stale !== undefined) return move(seat, { refuse: stale ?? notMember(plan) });
  if (run === seat.run && seat.phase.name !== "over") {
    return move(seat, { ticket: seat.phase.ticket });
  }
  return { ...overtaken(seat, run, { name: "holding", ticket }), reply: { ticket } };
}

type Held = Extract<SeatEvent, { type: "held" }>;

/** The seat is looked at again: a lease that comes too late is let go. */
function held(seat: Seat | null, { plan, run, ticket }: Held): SeatMove {
  if (seat?.plan === plan && seat.run === run) {
    const { phase } = seat;
    if (phase.name === "holding" && phase.ticket === ticket) {
      return move({ ...seat, phase: { name: "held", ticket } }, { done: true });
    }
    if (ticketOf(seat) === ticket) return move(seat, { done: true });
  }
  const refuse = staleStep(seat, plan, run) ?? leaseLost("unknown");
  return { ...move(seat, { refuse }), frees: { tickets: [ticket], checkpoints: [] } };
}

function mayPrepare(seat: Seat | null, plan: string, run: number): SeatReply {
  const stale = staleStep(seat, plan, run);
  if (seat === null || stale !== undefined) return { refuse: stale ?? notMember(plan) };
  const { phase } = seat;
  if (run === seat.run && phase.name === "held") return { ticket: phase.ticket };
  if (run === seat.run && phase.name === "prepared") return { vote: phase.vote };
  return { refuse: leaseLost("unknown") };
}

type Prepared = Extract<SeatEvent, { type: "prepared" }>;

function prepared(seat: Seat | null, event: Prepared): SeatMove {
  const { plan, run, ticket, vote, artefact } = event;
  const isOurs = seat?.plan === plan && seat.run === run;
  if (isOurs && seat.phase.name === "held" && seat.phase.ticket === ticket) {
    const phase: SeatPhase = { name: "prepared", ticket, vote, artefact };
    const checkpoint = artefact === null ? {} : { checkpoint: artefact };
    return {
      ...move({ ...seat, phase }, { vote }),
      tells: [{ type: "plan", what: "prepared", plan, commit: run, ...checkpoint }],
    };
  }
  const refuse = staleStep(seat, plan, run) ?? leaseLost("unknown");
  const checkpoints = artefact === null ? [] : [artefact];
  return { ...move(seat, { refuse }), frees: { tickets: [], checkpoints } };
}
