/**
 * Owns what a sandbox knows of the plan that it is a member of, and the moves of that: joined, held, prepared, over.
 * Steps name their run, and its number is their fence. Does not own the plan's side (run.ts), nor leases and trees:
 * a move says which of them are let go.
 */
import { BerthError } from "../../protocol/errors.ts";
import type { EventData } from "../../protocol/event.ts";
import { limits } from "../../protocol/limits.ts";
import type { Failure } from "../../protocol/plan.ts";
import { leaseLost } from "../lease/refusals.ts";
import { inPlan } from "./membership.ts";
import type { Verdict } from "./pending.ts";
import type { Ended, Vote } from "./record.ts";

export type Seat = {
  plan: string;
  /** The highest number of a run that was heard. */
  run: number;
  phase: SeatPhase;
  /** The checkpoint of the last commit, and which one that was. */
  committed: { checkpoint: string; run: number } | null;
  /** How the newest run that ended here did so, for the plan that asks again. */
  last: { run: number; ended: Ended } | null;
};

/** The ticket is that of the run's lease: whose grant has another one, the lease is lost. */
export type SeatPhase =
  | { name: "over" }
  | { name: "holding"; ticket: string }
  | { name: "held"; ticket: string }
  /** `artefact`: the checkpoint that a commit makes the committed one. */
  | { name: "prepared"; ticket: string; vote: Vote; artefact: string | null }
  /** Started from its last commit; `came` says how that start ended. */
  | { name: "restoring"; ticket: string; startId: string; tries: number; came: Came | null };

export type Came = "restored" | { failed: string };

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
  | { type: "finish"; plan: string; run: number; verdict: Verdict }
  /** It cannot be done, and never will. */
  | { type: "fail"; plan: string; run: number; error: Failure }
  /** In the same step in which the sandbox starts from its last commit. */
  | { type: "restoring"; run: number; startId: string };

export type SeatReply =
  | { done: true }
  /** By which the run has, or is to get, its lease. */
  | { ticket: string }
  | { vote: Vote }
  | { ended: Ended }
  /** First its files become those of this checkpoint. */
  | { restore: string }
  /** They are about to. */
  | { wait: true }
  | { refuse: BerthError };

export type SeatMove = {
  seat: Seat | null;
  reply: SeatReply;
  /** What nobody needs any more. */
  frees: { tickets: string[]; checkpoints: string[] };
  tells: EventData[];
};

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
  }
}

/** The checkpoints that the plan still needs. */
export function keptBySeat(seat: Seat | null): string[] {
  return seat === null ? [] : [...freedBy(seat.phase).checkpoints, ...committedOf(seat)];
}

export function ticketOf(seat: Seat | null): string | undefined {
  return seat === null || seat.phase.name === "over" ? undefined : seat.phase.ticket;
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
  const { tickets, checkpoints } = freedBy(seat.phase);
  return {
    seat: null,
    reply: { done: true },
    frees: { tickets, checkpoints: [...checkpoints, ...committedOf(seat)] },
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

type Finish = Extract<SeatEvent, { type: "finish" }>;

function finish(seat: Seat | null, { plan, run, verdict }: Finish): SeatMove {
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
  return verdict === "commit" ? commit(seat) : rollBack(seat);
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

function rollBack(seat: Seat): SeatMove {
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
  if (tries < limits.planRestoreTriesMax) return move(seat, { restore: committed.checkpoint });
  return closed(freed(seat), { outcome: "failed", error: notBroughtBack(came.failed, tries) });
}

type Fail = Extract<SeatEvent, { type: "fail" }>;

function fail(seat: Seat | null, { plan, run, error }: Fail): SeatMove {
  const ended: Ended = { outcome: "failed", error };
  if (seat === null || seat.plan !== plan) return move(seat, { ended });
  const known = endedBefore(seat, run);
  if (known !== undefined) return move(seat, known);
  return closed(run > seat.run ? overtaken(seat, run, { name: "over" }) : freed(seat), ended);
}

type Restoring = Extract<SeatEvent, { type: "restoring" }>;

function restoring(seat: Seat | null, { run, startId }: Restoring): SeatMove {
  const phase = seat?.phase;
  if (seat?.run !== run || (phase?.name !== "prepared" && phase?.name !== "restoring")) {
    throw new Error("only a prepared member is restored");
  }
  const { ticket } = phase;
  const tries = phase.name === "restoring" ? phase.tries + 1 : 1;
  const next: SeatPhase = { name: "restoring", ticket, startId, tries, came: null };
  return move({ ...seat, phase: next }, { wait: true });
}

/** A run that is over here answers as it did; one of before is not answered any more. */
function endedBefore(seat: Seat, run: number): SeatReply | undefined {
  if (seat.last?.run === run) return { ended: seat.last.ended };
  const isOver = run < seat.run || (run === seat.run && seat.phase.name === "over");
  return isOver ? { refuse: staleRun(seat.run) } : undefined;
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

/** The plan speaks of a later run, so the one that is open here is over for it. */
function overtaken(seat: Seat, run: number, phase: SeatPhase): SeatMove {
  return { ...freed(seat), seat: { ...seat, run, phase } };
}

/** The same, without what its run holds. */
function freed(seat: Seat): SeatMove {
  return { ...move(seat, { done: true }), frees: freedBy(seat.phase) };
}

function freedBy(phase: SeatPhase): SeatMove["frees"] {
  const artefact = phase.name === "prepared" ? phase.artefact : null;
  return {
    tickets: phase.name === "over" ? [] : [phase.ticket],
    checkpoints: artefact === null ? [] : [artefact],
  };
}

function committedOf({ committed }: Seat): string[] {
  return committed === null ? [] : [committed.checkpoint];
}

function move(seat: Seat | null, reply: SeatReply): SeatMove {
  return { seat, reply, frees: { tickets: [], checkpoints: [] }, tells: [] };
}

function staleStep(seat: Seat | null, plan: string, run: number): BerthError | undefined {
  if (seat === null || seat.plan !== plan) return notMember(plan);
  const isOver = run < seat.run || (run === seat.run && seat.phase.name === "over");
  return isOver ? staleRun(seat.run) : undefined;
}

function staleRun(run: number): BerthError {
  return new BerthError("stale_run", `The run is over here; the newest that was heard is ${run}.`, {
    facts: { run },
  });
}

function notMember(plan: string): BerthError {
  return new BerthError("stale_run", `The sandbox is no member of the plan ${plan}.`);
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
