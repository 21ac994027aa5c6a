/**
 * Steps a run through its two phases and the one decision between them. Nothing takes effect before the decision is
 * written; afterwards each member carries it out, however late. Late responses name their run and change nothing.
 * See pending.ts for the requests that each state sends.
 */
import { BerthError } from "../../protocol/errors.ts";
import { listInTurn } from "../../protocol/internal/change-list.ts";
import { limits } from "../../protocol/limits.ts";
import type { CommitMode, Failure } from "../../protocol/plan.ts";
import { isMembershipChanging, planBusyError } from "./membership.ts";
import type { PartResult, PlanRecord, Run, RunPart, Vote } from "./record.ts";

export type RunOptions = {
  kind: Run["kind"];
  mode: CommitMode;
  allowEmpty: boolean;
  waitMs: number;
};

export type BeginDecision =
  | { plan: PlanRecord; newRun: Run }
  /** The same call is already running: wait for that run. */
  | { join: number }
  /** Members are changing, or the last run has not ended. */
  | { wait: true }
  | { refuse: BerthError };

/** Fixes the members of the run in the same step. */
export function beginRun(plan: PlanRecord, call: RunOptions, now: number): BeginDecision {
  const { run } = plan;
  if (run !== null) {
    const { kind, mode, allowEmpty } = call;
    const isSame = run.kind === kind && run.mode === mode && run.allowEmpty === allowEmpty;
    if (!isSame) return { refuse: planBusyError(plan) as BerthError };
    // After the decision members are released one by one, and what changes in them then is not part of this run.
    return run.decision === null ? { join: run.n } : { wait: true };
  }
  if (isMembershipChanging(plan)) return { wait: true };
  if (plan.members.length === 0) return { refuse: noMembersError(call.kind) };
  const { kind, mode, allowEmpty, waitMs } = call;
  const newRun: Run = {
    n: plan.newestRun + 1,
    kind,
    mode,
    allowEmpty,
    startedAt: now,
    holdBy: now + waitMs,
    until: now + limits.planPrepareMs,
    decision: null,
    endedAt: null,
    parts: plan.members
      .map(({ key, sandbox }): RunPart => ({ key, sandbox, held: false, vote: null, ended: null }))
      .sort((a, b) => (a.sandbox < b.sandbox ? -1 : 1)),
  };
  return { plan: { ...plan, newestRun: newRun.n, run: newRun }, newRun };
}

export type RunEvent =
  | { type: "held"; n: number; sandbox: string }
  | { type: "voted"; n: number; sandbox: string; vote: Vote }
  /** A member has carried the decision out. */
  | { type: "ended"; n: number; sandbox: string; ended: PartResult }
  | { type: "deadline" }
  /** A new instance of the object: the callers are gone, so an undecided run is aborted. */
  | { type: "instance" };

export function stepRun(plan: PlanRecord, event: RunEvent, now: number): PlanRecord {
  const { run } = plan;
  if (run === null) return plan;
  if (event.type === "deadline") {
    const isLate = run.decision === null && now >= run.until;
    return isLate ? withDecision(plan, run, abort(now, prepareTimeout)) : plan;
  }
  if (event.type === "instance") {
    return run.decision === null ? withDecision(plan, run, abort(now, interrupted)) : plan;
  }
  if (event.n !== run.n) return plan;
  if (event.type === "ended") {
    if (run.decision === null) return plan;
    return closeIfComplete(
      plan,
      updatePart(run, event.sandbox, (part) => endPart(part, event.ended)),
      now,
    );
  }
  // A vote that arrives after the decision has no effect.
  if (run.decision !== null) return plan;
  const updated = updatePart(run, event.sandbox, (part) =>
    event.type === "held" ? { ...part, held: true } : recordVote(part, event.vote),
  );
  const decision = decideRun(updated, now);
  return decision === null ? { ...plan, run: updated } : withDecision(plan, updated, decision);
}

/** The only place where a run is decided. */
function decideRun({ kind, mode, allowEmpty, parts }: Run, now: number): Run["decision"] {
  const no = parts.map(noVoteOf).find((failure) => failure !== undefined);
  // A partial rollback would leave a mixture of states, so best effort applies to commits only.
  if (no !== undefined && (mode === "atomic" || kind === "rollback")) return abort(now, no);
  if (parts.some(({ vote }) => vote === null)) return null;
  const yes = parts.flatMap(({ vote }) => (vote !== null && "yes" in vote ? [vote.yes] : []));
  if (no !== undefined && yes.length === 0) return abort(now, no);
  const isNothing =
    kind === "rollback"
      ? yes.every(({ checkpoint }) => checkpoint === null)
      : !allowEmpty && yes.every(({ changes }) => changes !== null && isUnchanged(changes.counts));
  // Whether a member that voted no has changed is unknown, so its failure is the reason to report.
  if (isNothing) return abort(now, no ?? failureOf(nothingToDoError(kind)));
  return { go: true, at: now };
}

/** An abort goes to all members, even to those without a request: one may still be in flight. */
function withDecision(plan: PlanRecord, run: Run, decision: Run["decision"]): PlanRecord {
  return { ...plan, run: { ...run, decision } };
}

/** Ends the run when its last member has ended; the plan can change again. */
function closeIfComplete(plan: PlanRecord, run: Run, now: number): PlanRecord {
  if (run.parts.some(({ ended }) => ended === null)) return { ...plan, run };
  const committed = new Set(
    run.parts.filter(({ ended }) => ended?.outcome === "committed").map(({ sandbox }) => sandbox),
  );
  return {
    ...plan,
    members: plan.members.map((member) =>
      committed.has(member.sandbox) ? { ...member, committed: run.n } : member,
    ),
    run: null,
    lastRun: { ...run, endedAt: now },
  };
}

function recordVote(part: RunPart, vote: Vote): RunPart {
  if (part.vote !== null) return part;
  if ("no" in vote) return { ...part, vote: { no: normalizeLeaseFailure(part, vote.no) } };
  if (vote.yes.changes === null) return { ...part, vote };
  // A row has a maximum size, and all members together make up one response. The counts stay complete.
  const { changedPathsMax, changedPathsCharsMax } = limits;
  const listed = listInTurn(vote.yes.changes, changedPathsMax, changedPathsCharsMax);
  return { ...part, vote: { yes: { ...vote.yes, changes: { ...vote.yes.changes, ...listed } } } };
}

/** Reports `lease_held` whichever way the wait for the lease ended, so that callers have one code to handle. */
function normalizeLeaseFailure({ key }: RunPart, no: Failure): Failure {
  const { code, holder } = no;
  if (code !== "lease_held" && code !== "lease_wait_timeout" && code !== "lease_pending") return no;
  const by = holder === undefined ? "" : ` by ${holder}`;
  return {
    code: "lease_held",
    message: `The lease of the member ${key} was held${by} and not released in time.`,
    hint: "Run it again, if necessary with a longer `waitMs`.",
    ...(holder === undefined ? {} : { holder }),
  };
}

function endPart(part: RunPart, ended: PartResult): RunPart {
  if (part.ended !== null) return part;
  const no = noVoteOf(part);
  // The member's own reason says more than that the run was aborted.
  return {
    ...part,
    ended: no === undefined || ended.error !== undefined ? ended : { ...ended, error: no },
  };
}

function updatePart(run: Run, sandbox: string, to: (part: RunPart) => RunPart): Run {
  return { ...run, parts: run.parts.map((part) => (part.sandbox === sandbox ? to(part) : part)) };
}

export function noVoteOf({ vote }: RunPart): Failure | undefined {
  return vote !== null && "no" in vote ? vote.no : undefined;
}

function isUnchanged(counts: Record<string, number>): boolean {
  return Object.values(counts).every((count) => count === 0);
}

function abort(now: number, error: Failure): NonNullable<Run["decision"]> {
  return { go: false, at: now, error };
}

function nothingToDoError(kind: Run["kind"]): BerthError {
  return kind === "commit"
    ? new BerthError("nothing_to_commit", "No member has changed since its last commit.", {
        hint: "Pass `allowEmpty` to commit anyway.",
      })
    : new BerthError("nothing_to_roll_back", "No member has been committed yet.");
}

function noMembersError(kind: Run["kind"]): BerthError {
  const code = kind === "commit" ? "nothing_to_commit" : "nothing_to_roll_back";
  return new BerthError(code, "The plan has no members.", {
    hint: "Add one with PUT /v1/plans/:plan/sandboxes/:key.",
  });
}

export function failureOf({
  code,
  message,
  hint,
  facts,
}: Pick<BerthError, "code" | "message" | "hint" | "facts">): Failure {
  return {
    code,
    message,
    ...(hint === undefined ? {} : { hint }),
    ...(typeof facts.holder === "string" ? { holder: facts.holder } : {}),
  };
}

const prepareTimeout: Failure = {
  code: "unavailable",
  message: "Some members were not prepared in time. Nothing was changed.",
};

const interrupted: Failure = {
  code: "unavailable",
  message: "The run was interrupted before its decision. Nothing was changed.",
  hint: "Run it again.",
};
