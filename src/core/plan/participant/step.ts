/** Steps a plan's participant through a run: hold the lease, prepare, vote. The run's number is the fence. */
import { leaseLostError } from "../../lease/refusals.ts";
import { inOtherPlanError } from "../membership.ts";
import type { Vote } from "../record.ts";
import {
  type FailEvent,
  type FinishEvent,
  failRun,
  finishRun,
  type RequeueEvent,
  type RestoringEvent,
  requeueLease,
  startRestore,
} from "./finish.ts";
import {
  advanceToRun,
  notMemberError,
  type Participant,
  type ParticipantPhase,
  type ParticipantReply,
  type ParticipantStep,
  replyWith,
  resourcesOf,
  staleStepError,
  ticketOf,
} from "./participant.ts";

export type ParticipantEvent =
  | { type: "join"; plan: string; run: number }
  | { type: "leave"; plan: string }
  /** `ticket` is used if the run starts here with this step. */
  | { type: "hold"; plan: string; run: number; ticket: string }
  /** The run has been granted the lease. */
  | { type: "held"; plan: string; run: number; ticket: string }
  | { type: "prepare"; plan: string; run: number }
  /** The slow work of preparing is done. */
  | {
      type: "prepared";
      plan: string;
      run: number;
      ticket: string;
      vote: Vote;
      preparedCheckpoint: string | null;
    }
  | FinishEvent
  | FailEvent
  | RestoringEvent
  | RequeueEvent;

export function stepParticipant(
  participant: Participant | null,
  event: ParticipantEvent,
): ParticipantStep {
  switch (event.type) {
    case "join":
      return join(participant, event.plan, event.run);
    case "leave":
      return leave(participant, event.plan);
    case "hold":
      return hold(participant, event);
    case "held":
      return held(participant, event);
    case "prepare":
      return replyWith(participant, mayPrepare(participant, event.plan, event.run));
    case "prepared":
      return prepared(participant, event);
    case "finish":
      return finishRun(participant, event);
    case "fail":
      return failRun(participant, event);
    case "restoring":
      return startRestore(participant, event);
    case "requeue":
      return requeueLease(participant, event);
  }
}

function join(participant: Participant | null, plan: string, run: number): ParticipantStep {
  if (participant === null) {
    const joined: Participant = { plan, run, phase: { name: "over" }, committed: null, last: null };
    return {
      ...replyWith(joined, { done: true }),
      events: [{ type: "plan", what: "joined", plan }],
    };
  }
  if (participant.plan !== plan) {
    return replyWith(participant, { refuse: inOtherPlanError(participant.plan) });
  }
  return run > participant.run
    ? advanceToRun(participant, run, { name: "over" })
    : replyWith(participant, { done: true });
}

function leave(participant: Participant | null, plan: string): ParticipantStep {
  if (participant?.plan !== plan) return replyWith(participant, { done: true });
  return {
    participant: null,
    reply: { done: true },
    releases: resourcesOf(participant),
    events: [{ type: "plan", what: "left", plan }],
  };
}

type Hold = Extract<ParticipantEvent, { type: "hold" }>;

function hold(participant: Participant | null, { plan, run, ticket }: Hold): ParticipantStep {
  const stale = staleStepError(participant, plan, run);
  if (participant === null || stale !== undefined) {
    return replyWith(participant, { refuse: stale ?? notMemberError(plan) });
  }
  if (run === participant.run && participant.phase.name !== "over") {
    return replyWith(participant, { ticket: participant.phase.ticket });
  }
  return { ...advanceToRun(participant, run, { name: "holding", ticket }), reply: { ticket } };
}

type Held = Extract<ParticipantEvent, { type: "held" }>;

/** Releases a lease that was granted after the run had ended. */
function held(participant: Participant | null, { plan, run, ticket }: Held): ParticipantStep {
  if (participant?.plan === plan && participant.run === run) {
    const { phase } = participant;
    if (phase.name === "holding" && phase.ticket === ticket) {
      return replyWith({ ...participant, phase: { name: "held", ticket } }, { done: true });
    }
    if (ticketOf(participant) === ticket) return replyWith(participant, { done: true });
  }
  const refuse = staleStepError(participant, plan, run) ?? leaseLostError("unknown");
  return {
    ...replyWith(participant, { refuse }),
    releases: { tickets: [ticket], checkpoints: [] },
  };
}

function mayPrepare(participant: Participant | null, plan: string, run: number): ParticipantReply {
  const stale = staleStepError(participant, plan, run);
  if (participant === null || stale !== undefined) return { refuse: stale ?? notMemberError(plan) };
  const { phase } = participant;
  if (run === participant.run && phase.name === "held") return { ticket: phase.ticket };
  if (run === participant.run && phase.name === "prepared") return { vote: phase.vote };
  return { refuse: leaseLostError("unknown") };
}

type Prepared = Extract<ParticipantEvent, { type: "prepared" }>;

function prepared(participant: Participant | null, event: Prepared): ParticipantStep {
  const { plan, run, ticket, vote, preparedCheckpoint } = event;
  const isOurs = participant?.plan === plan && participant.run === run;
  if (isOurs && participant.phase.name === "held" && participant.phase.ticket === ticket) {
    const phase: ParticipantPhase = { name: "prepared", ticket, vote, preparedCheckpoint };
    const checkpoint = preparedCheckpoint === null ? {} : { checkpoint: preparedCheckpoint };
    return {
      ...replyWith({ ...participant, phase }, { vote }),
      events: [{ type: "plan", what: "prepared", plan, commit: run, ...checkpoint }],
    };
  }
  const refuse = staleStepError(participant, plan, run) ?? leaseLostError("unknown");
  const checkpoints = preparedCheckpoint === null ? [] : [preparedCheckpoint];
  return { ...replyWith(participant, { refuse }), releases: { tickets: [], checkpoints } };
}
