/**
 * Builds the result of a participant's step: the new state, the reply, the resources to release and the events; and
 * refuses steps that come too late.
 */
import { BerthError } from "../../../protocol/errors.ts";
import type { EventData } from "../../../protocol/event.ts";
import type { PartResult, Vote } from "../record.ts";
import {
  type Participant,
  type ParticipantPhase,
  type RunResources,
  runResourcesOf,
} from "./participant.ts";

export type ParticipantReply =
  | { done: true }
  /** The ticket of the lease that the run has or waits for. */
  | { ticket: string }
  | { vote: Vote }
  | { ended: PartResult }
  /** The caller must first start the sandbox from this checkpoint. */
  | { restore: string }
  /** The same, but not before this time: the last start failed for a temporary reason. */
  | { later: number }
  /** A restore is running. */
  | { wait: true }
  | { refuse: BerthError };

export type ParticipantStep = {
  participant: Participant | null;
  reply: ParticipantReply;
  /** Leases and checkpoints that nothing needs any more. */
  releases: RunResources;
  events: EventData[];
};

/** Moves on to a later run of the plan: whatever run was open here is over. */
export function advanceToRun(
  participant: Participant,
  run: number,
  phase: ParticipantPhase,
): ParticipantStep {
  return { ...releaseRun(participant), participant: { ...participant, run, phase } };
}

/** Leaves the state as it is and releases what the open run keeps. */
export function releaseRun(participant: Participant): ParticipantStep {
  return { ...replyWith(participant, { done: true }), releases: runResourcesOf(participant.phase) };
}

export function replyWith(
  participant: Participant | null,
  reply: ParticipantReply,
): ParticipantStep {
  return { participant, reply, releases: { tickets: [], checkpoints: [] }, events: [] };
}

export function staleStepError(
  participant: Participant | null,
  plan: string,
  run: number,
): BerthError | undefined {
  if (participant === null || participant.plan !== plan) return notMemberError(plan);
  return isRunOver(participant, run) ? staleRunError(participant.run) : undefined;
}

export function isRunOver(participant: Participant, run: number): boolean {
  return run < participant.run || (run === participant.run && participant.phase.name === "over");
}

export function staleRunError(run: number): BerthError {
  return new BerthError("stale_run", `The run is over here; the newest run is ${run}.`, {
    facts: { run },
  });
}

export function staleMembershipError(plan: string, membershipRevision: number): BerthError {
  return new BerthError("stale_run", `The plan ${plan} has changed its members since.`, {
    facts: { move: membershipRevision },
  });
}

export function notMemberError(plan: string): BerthError {
  return new BerthError("stale_run", `The sandbox is not a member of the plan ${plan}.`);
}
