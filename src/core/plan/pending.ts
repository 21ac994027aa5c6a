/**
 * Lists the requests that a plan has yet to send to its participants and to the Directory, and says when the plan must be
 * checked again. After a restart the same requests are sent again, so each is harmless when repeated.
 */
import { type Deadline, earliest } from "../deadline.ts";
import type { Joining, PlanRecord, Run, RunPart } from "./record.ts";

export type ParticipantDecision = "commit" | "abort" | "roll_back";

export type RunRequest =
  /** Acquire the lease for the run. */
  | { type: "hold"; sandbox: string; by: number }
  /** Do everything that is slow or may fail, and vote. */
  | { type: "prepare"; sandbox: string }
  /** Carry the decision out; a participant cannot refuse it. */
  | { type: "finish"; sandbox: string; decision: ParticipantDecision };

export type MembershipRequest =
  /** Join the plan; the Directory creates the sandbox first if necessary. */
  | { type: "join"; sandbox: string; joining: Joining }
  | { type: "leave"; sandbox: string; membershipRevision: number }
  /** End the sandbox, after it has left. */
  | { type: "end"; sandbox: string; force: boolean }
  /** Make the Directory give the plan's name back. */
  | { type: "unregister" };

/** In the order in which they are sent; the caller limits how many are sent at once. */
export function pendingRunRequests({ run }: PlanRecord): RunRequest[] {
  if (run === null) return [];
  const { decision, parts } = run;
  if (decision !== null) {
    return parts
      .filter(({ ended }) => ended === null)
      .map((part) => ({ type: "finish", sandbox: part.sandbox, decision: decisionFor(run, part) }));
  }
  // Leases are acquired one after the other in a fixed order: two runs that share sandboxes cannot deadlock.
  const next = parts.find(({ held, vote }) => !held && vote === null);
  if (next !== undefined) return [{ type: "hold", sandbox: next.sandbox, by: run.holdBy }];
  return parts
    .filter(({ vote }) => vote === null)
    .map(({ sandbox }) => ({ type: "prepare", sandbox }));
}

export function pendingMembershipRequests({
  joining,
  leaving,
  status,
}: PlanRecord): MembershipRequest[] {
  const requests: MembershipRequest[] = [
    ...joining.map(
      (entry): MembershipRequest => ({ type: "join", sandbox: entry.sandbox, joining: entry }),
    ),
    ...leaving.map(
      ({ phase, sandbox, membershipRevision, disposition }): MembershipRequest =>
        phase === "leave"
          ? { type: phase, sandbox, membershipRevision }
          : { type: phase, sandbox, force: disposition === "force" },
    ),
  ];
  // The name is given back last: a caller who sees it gone finds all members free.
  const haveAllLeft = leaving.every(({ phase }) => phase !== "leave");
  return status === "removing" && haveAllLeft ? [...requests, { type: "unregister" }] : requests;
}

function decisionFor({ kind, decision }: Run, { vote }: RunPart): ParticipantDecision {
  if (decision?.go !== true || vote === null || "no" in vote) return "abort";
  return kind === "commit" ? "commit" : "roll_back";
}

export function hasPendingRequests({ run, joining, leaving, status }: PlanRecord): boolean {
  return run !== null || joining.length + leaving.length > 0 || status === "removing";
}

/** `retryAt`: when requests without a response are sent again. */
export function planDeadline(plan: PlanRecord, retryAt: number): Deadline | undefined {
  const { run } = plan;
  const isUndecided = run !== null && run.decision === null;
  return earliest([
    isUndecided ? { at: run.until, why: "run timeout" } : undefined,
    hasPendingRequests(plan) ? { at: retryAt, why: "request retry" } : undefined,
  ]);
}
