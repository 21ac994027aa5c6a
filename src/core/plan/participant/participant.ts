/**
 * Describes what a sandbox knows of the plan that it belongs to: the plan, the newest run and how far that run is.
 * See step.ts for the transitions and plan/record.ts for the plan's own side.
 */
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
export function runResourcesOf(phase: ParticipantPhase): RunResources {
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
