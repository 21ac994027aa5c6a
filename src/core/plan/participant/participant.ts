/** Describes what a sandbox knows of its plan, and the result of a step: state, reply, releases and events. */
import { BerthError } from "../../../protocol/errors.ts";
import type { EventData } from "../../../protocol/event.ts";
import type { SandboxState } from "../../sandbox/record.ts";
import type { PartResult, Vote } from "../record.ts";

export type Participant = {
  plan: string;
  /** The highest run number that the plan has sent; steps of lower runs are refused. */
  run: number;
  phase: ParticipantPhase;
  /** The checkpoint of the last commit, and the number of that commit. */
  committed: { checkpoint: string; run: number } | null;
  /** The result of the newest run that ended here, so that a repeated request gets the same response. */
  last: { run: number; ended: PartResult } | null;
};

/**
 * How far the run `Participant.run` is here. `ticket` identifies the lease that the run acquired: if the lease is
 * granted to another ticket, the run has lost it. No phase has a deadline of its own: the plan decides or aborts its run in
 * time and repeats `finish` until it gets a result.
 */
export type ParticipantPhase =
  /** No run is open: the sandbox has just joined, or its newest run has ended. */
  | { name: "over" }
  /** The run waits in the lease queue. */
  | { name: "holding"; ticket: string }
  /** The run has the lease, pinned until `finish`. */
  | { name: "held"; ticket: string }
  /** The sandbox has voted. `preparedCheckpoint` becomes the committed checkpoint if the plan decides to commit. */
  | { name: "prepared"; ticket: string; vote: Vote; preparedCheckpoint: string | null }
  /** A decided rollback is starting the sandbox from its committed checkpoint. */
  | {
      name: "restoring";
      ticket: string;
      startId: string;
      tries: number;
      /** Starts that failed for a temporary reason; they do not count as tries. */
      deferrals?: number;
      /** How the start ended; null while it is running. */
      result: RestoreResult | null;
    };

/** `passedAt`: the start failed at this time for a temporary reason. */
export type RestoreResult = "restored" | { failed: string; passedAt?: number };

/** What a run keeps at its participant: lease tickets and checkpoints. */
export type RunResources = { tickets: string[]; checkpoints: string[] };

/** Everything that the plan keeps at this sandbox. */
export function resourcesOf(participant: Participant | null): RunResources {
  if (participant === null) return { tickets: [], checkpoints: [] };
  const { tickets, checkpoints } = runResourcesOf(participant.phase);
  return { tickets, checkpoints: [...checkpoints, ...committedCheckpoints(participant)] };
}

export function ticketOf(participant: Participant | null): string | undefined {
  if (participant === null || participant.phase.name === "over") return undefined;
  return participant.phase.ticket;
}

/** What the open run keeps, without the committed checkpoint. */
function runResourcesOf(phase: ParticipantPhase): RunResources {
  const checkpoint = phase.name === "prepared" ? phase.preparedCheckpoint : null;
  return {
    tickets: phase.name === "over" ? [] : [phase.ticket],
    checkpoints: checkpoint === null ? [] : [checkpoint],
  };
}

export function committedCheckpoints({ committed }: Participant): string[] {
  return committed === null ? [] : [committed.checkpoint];
}

/**
 * Records how the start of a rollback ended. The caller commits this together with the sandbox's own transition, so that
 * neither a crash nor a later start can change the result.
 */
export function recordRestoreResult(
  participant: Participant | null,
  before: SandboxState,
  after: SandboxState,
): Participant | null {
  if (participant === null || before === after) return participant;
  const { phase } = participant;
  if (phase.name !== "restoring") return participant;
  if (!isStartOf(phase.startId, before) || isStartOf(phase.startId, after)) return participant;
  return { ...participant, phase: { ...phase, result: restoreResultOf(after) } };
}

function restoreResultOf(state: SandboxState): RestoreResult {
  if (state.name === "running") return "restored";
  const failed = "reason" in state ? state.reason : state.name;
  const isTemporary = state.name === "failed" && state.passes === true;
  return isTemporary ? { failed, passedAt: state.since } : { failed };
}

function isStartOf(startId: string, state: SandboxState): boolean {
  return state.name === "starting" && state.start.startId === startId;
}

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
