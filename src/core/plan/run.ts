/**
 * Owns the moves of a run: two phases with one decision between them. Until it is written nothing has happened to
 * anybody; once it is, each member does what was decided, however late.
 * Does not own asking the members (pending.ts says what to ask). What comes late names its run.
 */
import { BerthError } from "../../protocol/errors.ts";
import { limits } from "../../protocol/limits.ts";
import type { CommitMode, Failure } from "../../protocol/plan.ts";
import { listable } from "./listable.ts";
import { isMoving, planBusy } from "./membership.ts";
import type { Ended, Part, PlanRecord, Run, Vote } from "./record.ts";

export type Begin = {
  kind: Run["kind"];
  mode: CommitMode;
  allowEmpty: boolean;
  waitMs: number;
};

export type Begun =
  | { plan: PlanRecord; began: Run }
  /** The same call is on its way: it is this one. */
  | { join: number }
  /** Somebody is on the way in or out, or the last run has yet to end. */
  | { wait: true }
  | { refuse: BerthError };

/** The members are read and frozen in this one step. */
export function begin(plan: PlanRecord, call: Begin, now: number): Begun {
  const { run } = plan;
  if (run !== null) {
    const { kind, mode, allowEmpty } = call;
    const isSame = run.kind === kind && run.mode === mode && run.allowEmpty === allowEmpty;
    if (!isSame) return { refuse: planBusy(plan) as BerthError };
    // Once it is decided its members are let go one by one: what is done in them then is not in it.
    return run.decision === null ? { join: run.n } : { wait: true };
  }
  if (isMoving(plan)) return { wait: true };
  if (plan.members.length === 0) return { refuse: nobody(call.kind) };
  const { kind, mode, allowEmpty, waitMs } = call;
  const began: Run = {
    n: plan.newest + 1,
    kind,
    mode,
    allowEmpty,
    startedAt: now,
    holdBy: now + waitMs,
    until: now + limits.planPrepareMs,
    decision: null,
    endedAt: null,
    parts: plan.members
      .map(({ key, sandbox }): Part => ({ key, sandbox, held: false, vote: null, ended: null }))
      .sort((a, b) => (a.sandbox < b.sandbox ? -1 : 1)),
  };
  return { plan: { ...plan, newest: began.n, run: began }, began };
}

export type RunEvent =
  | { type: "held"; n: number; sandbox: string }
  | { type: "voted"; n: number; sandbox: string; vote: Vote }
  /** After the decision. */
  | { type: "ended"; n: number; sandbox: string; ended: Ended }
  | { type: "deadline" }
  /** A fresh instance of the object: whoever asked is gone, and what was not decided did not happen. */
  | { type: "instance" };

export function stepRun(plan: PlanRecord, event: RunEvent, now: number): PlanRecord {
  const { run } = plan;
  if (run === null) return plan;
  if (event.type === "deadline") {
    const isLate = run.decision === null && now >= run.until;
    return isLate ? decided(plan, run, abort(now, timedOut)) : plan;
  }
  if (event.type === "instance") {
    return run.decision === null ? decided(plan, run, abort(now, interrupted)) : plan;
  }
  if (event.n !== run.n) return plan;
  if (event.type === "ended") {
    if (run.decision === null) return plan;
    return closed(
      plan,
      change(run, event.sandbox, (part) => endPart(part, event.ended)),
      now,
    );
  }
  // What a member says after the decision says nothing any more.
  if (run.decision !== null) return plan;
  const said = change(run, event.sandbox, (part) =>
    event.type === "held" ? { ...part, held: true } : votes(part, event.vote),
  );
  const decision = decide(said, now);
  return decision === null ? { ...plan, run: said } : decided(plan, said, decision);
}

/** The one place where it is decided. */
function decide({ kind, mode, allowEmpty, parts }: Run, now: number): Run["decision"] {
  const no = parts.map(noOf).find((failure) => failure !== undefined);
  // To go back in part would leave a mixture: best effort is for commits.
  if (no !== undefined && (mode === "atomic" || kind === "rollback")) return abort(now, no);
  if (parts.some(({ vote }) => vote === null)) return null;
  const yes = parts.flatMap(({ vote }) => (vote !== null && "yes" in vote ? [vote.yes] : []));
  if (no !== undefined && yes.length === 0) return abort(now, no);
  const isNothing =
    kind === "rollback"
      ? yes.every(({ checkpoint }) => checkpoint === null)
      : !allowEmpty && yes.every(({ changes }) => changes !== null && isUnchanged(changes.counts));
  // Of whoever could not, nobody knows whether it has changed.
  if (isNothing) return abort(now, no ?? failureOf(nothing(kind)));
  return { go: true, at: now };
}

/** All are told of an abort, also who was not asked yet: a question may still be on its way. */
function decided(plan: PlanRecord, run: Run, decision: Run["decision"]): PlanRecord {
  return { ...plan, run: { ...run, decision } };
}

/** With the last of its members a run is over, and the plan open again. */
function closed(plan: PlanRecord, run: Run, now: number): PlanRecord {
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
    last: { ...run, endedAt: now },
  };
}

function votes(part: Part, vote: Vote): Part {
  if (part.vote !== null) return part;
  if ("no" in vote) return { ...part, vote: { no: notLetIn(part, vote.no) } };
  if (vote.yes.changes === null) return { ...part, vote };
  return { ...part, vote: { yes: { ...vote.yes, changes: listable(vote.yes.changes) } } };
}

/** Whoever commits hears one word for it, now and whenever it is read again, however the waiting ended. */
function notLetIn({ key }: Part, no: Failure): Failure {
  const { code, holder } = no;
  if (code !== "lease_held" && code !== "lease_wait_timeout" && code !== "lease_pending") return no;
  const who = holder === undefined ? "" : ` by ${holder}`;
  return {
    code: "lease_held",
    message: `The member ${key} was held${who} and not let go in time.`,
    hint: "Run it again, with a longer waitMs if need be.",
    ...(holder === undefined ? {} : { holder }),
  };
}

function endPart(part: Part, ended: Ended): Part {
  if (part.ended !== null) return part;
  const no = noOf(part);
  // Why it was not committed is what it said itself, not that it let go.
  return {
    ...part,
    ended: no === undefined || ended.error !== undefined ? ended : { ...ended, error: no },
  };
}

function change(run: Run, sandbox: string, to: (part: Part) => Part): Run {
  return { ...run, parts: run.parts.map((part) => (part.sandbox === sandbox ? to(part) : part)) };
}

export function noOf({ vote }: Part): Failure | undefined {
  return vote !== null && "no" in vote ? vote.no : undefined;
}

function isUnchanged({
  added,
  modified,
  deleted,
}: {
  added: number;
  modified: number;
  deleted: number;
}): boolean {
  return added + modified + deleted === 0;
}

function abort(at: number, error: Failure): NonNullable<Run["decision"]> {
  return { go: false, at, error };
}

function nothing(kind: Run["kind"]): BerthError {
  return kind === "commit"
    ? new BerthError("nothing_to_commit", "No member has changed since its last commit.", {
        hint: "allowEmpty commits all the same.",
      })
    : new BerthError("nothing_to_roll_back", "No member was ever committed.");
}

function nobody(kind: Run["kind"]): BerthError {
  const code = kind === "commit" ? "nothing_to_commit" : "nothing_to_roll_back";
  return new BerthError(code, "The plan has no members.", {
    hint: "Give it some: PUT /v1/plans/:plan/sandboxes/:key.",
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

const timedOut: Failure = {
  code: "unavailable",
  message: "The members were not ready in time.",
};

const interrupted: Failure = {
  code: "unavailable",
  message: "The run was interrupted before it was decided: nothing was done.",
  hint: "Run it again.",
};
