/** Ends a run at its participant: carries the decision out once, and repeats the same result later. */
import type { EventData } from "../../../protocol/event.ts";
import { limits } from "../../../protocol/limits.ts";
import type { Failure } from "../../../protocol/plan.ts";
import { backOffMs } from "../../deadline.ts";
import type { ParticipantDecision } from "../pending.ts";
import type { PartResult } from "../record.ts";
import {
  advanceToRun,
  committedCheckpoints,
  isRunOver,
  type Participant,
  type ParticipantPhase,
  type ParticipantReply,
  type ParticipantStep,
  releaseRun,
  replyWith,
  staleRunError,
} from "./participant.ts";

export type FinishEvent = {
  type: "finish";
  plan: string;
  run: number;
  decision: ParticipantDecision;
  now: number;
};
/** The decision can never be carried out here. */
export type FailEvent = { type: "fail"; plan: string; run: number; error: Failure };
/** The sandbox starts from its last commit; committed in the same transaction as that start. */
export type RestoringEvent = { type: "restoring"; run: number; startId: string };
/** The run lost its lease after the decision and queues for it again with this ticket. */
export type RequeueEvent = { type: "requeue"; run: number; ticket: string };

export function finishRun(
  participant: Participant | null,
  { plan, run, decision, now }: FinishEvent,
): ParticipantStep {
  const isAbort = decision === "abort";
  const nothingHere: PartResult = isAbort
    ? { outcome: "aborted" }
    : { outcome: "failed", error: nothingPrepared };
  // A refusal would be repeated forever and keep the run from ending, so a sandbox outside the plan gives a result.
  if (participant?.plan !== plan) return replyWith(participant, { ended: nothingHere });
  const known = endedBefore(participant, run);
  if (known !== undefined) return replyWith(participant, known);
  // The run is unknown here. Recording its end refuses those of its steps that are still in flight.
  if (run > participant.run) {
    return closeRun(advanceToRun(participant, run, { name: "over" }), nothingHere);
  }
  if (isAbort) return closeRun(releaseRun(participant), { outcome: "aborted" });
  return decision === "commit" ? commit(participant) : rollBack(participant, now);
}

function commit(participant: Participant): ParticipantStep {
  const { phase, run } = participant;
  if (phase.name !== "prepared" || phase.preparedCheckpoint === null) {
    return closeRun(releaseRun(participant), { outcome: "failed", error: nothingPrepared });
  }
  const committed = { checkpoint: phase.preparedCheckpoint, run };
  const releases = { tickets: [phase.ticket], checkpoints: committedCheckpoints(participant) };
  const step = { ...replyWith({ ...participant, committed }, { done: true }), releases };
  return closeRun(step, { outcome: "committed" });
}

function rollBack(participant: Participant, now: number): ParticipantStep {
  const { phase, committed } = participant;
  if (phase.name === "prepared" && phase.preparedCheckpoint === null) {
    return committed === null
      ? closeRun(releaseRun(participant), { outcome: "skipped" })
      : replyWith(participant, { restore: committed.checkpoint });
  }
  if (phase.name !== "restoring" || committed === null) {
    return closeRun(releaseRun(participant), { outcome: "failed", error: nothingPrepared });
  }
  const { result, tries } = phase;
  if (result === null) return replyWith(participant, { wait: true });
  if (result === "restored") return closeRun(releaseRun(participant), { outcome: "rolled_back" });
  const restore = replyWith(participant, { restore: committed.checkpoint });
  if (result.passedAt !== undefined) {
    const retryAt = result.passedAt + restoreDelayMs(phase.deferrals ?? 0);
    return now < retryAt ? replyWith(participant, { later: retryAt }) : restore;
  }
  if (tries < limits.planRestoreTriesMax) return restore;
  return closeRun(releaseRun(participant), {
    outcome: "failed",
    error: restoreFailure(result.failed, tries),
  });
}

export function failRun(
  participant: Participant | null,
  { plan, run, error }: FailEvent,
): ParticipantStep {
  const ended: PartResult = { outcome: "failed", error };
  if (participant?.plan !== plan) return replyWith(participant, { ended });
  const known = endedBefore(participant, run);
  if (known !== undefined) return replyWith(participant, known);
  return closeRun(
    run > participant.run
      ? advanceToRun(participant, run, { name: "over" })
      : releaseRun(participant),
    ended,
  );
}

export function startRestore(
  participant: Participant | null,
  { run, startId }: RestoringEvent,
): ParticipantStep {
  const phase = participant?.phase;
  if (participant?.run !== run || (phase?.name !== "prepared" && phase?.name !== "restoring")) {
    throw new Error("only a prepared member is restored");
  }
  const { ticket } = phase;
  const next: ParticipantPhase = {
    name: "restoring",
    ticket,
    startId,
    ...nextTries(phase),
    result: null,
  };
  return replyWith({ ...participant, phase: next }, { wait: true });
}

export function requeueLease(
  participant: Participant | null,
  { run, ticket }: RequeueEvent,
): ParticipantStep {
  const phase = participant?.phase;
  if (participant?.run !== run || (phase?.name !== "prepared" && phase?.name !== "restoring")) {
    throw new Error("only what is decided is queued for again");
  }
  return replyWith({ ...participant, phase: { ...phase, ticket } }, { ticket });
}

/** A start that failed for a temporary reason does not count as a try. */
function nextTries(phase: ParticipantPhase): { tries: number; deferrals?: number } {
  if (phase.name !== "restoring") return { tries: 1 };
  const { tries, deferrals = 0, result } = phase;
  const isTemporary = result !== null && result !== "restored" && result.passedAt !== undefined;
  return isTemporary ? { tries, deferrals: deferrals + 1 } : { tries: tries + 1, deferrals };
}

function restoreDelayMs(deferrals: number): number {
  return backOffMs(limits.planRestorePauseMs, deferrals, limits.planRestorePauseMaxMs);
}

/** The newest ended run repeats its result; earlier runs are refused. */
function endedBefore(participant: Participant, run: number): ParticipantReply | undefined {
  if (participant.last?.run === run) return { ended: participant.last.ended };
  return isRunOver(participant, run) ? { refuse: staleRunError(participant.run) } : undefined;
}

/** Records the result. The step already releases what the run kept. */
function closeRun({ participant, releases }: ParticipantStep, ended: PartResult): ParticipantStep {
  if (participant === null) throw new Error("only a member ends a run");
  const over: Participant = {
    ...participant,
    phase: { name: "over" },
    last: { run: participant.run, ended },
  };
  return {
    participant: over,
    reply: { ended },
    releases,
    events: endEvents(participant, ended),
  };
}

function endEvents(
  { plan, run, phase, committed }: Participant,
  { outcome }: PartResult,
): EventData[] {
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
  message: "The sandbox has not prepared anything for this run.",
};

function restoreFailure(reason: string, tries: number): Failure {
  return {
    code: "start_failed",
    message: `The sandbox did not start from its last commit after ${tries} tries: ${reason}.`,
  };
}
