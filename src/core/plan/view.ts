/** Shows plans, members and runs to callers, and turns the failure of a run into a refusal. */
import { BerthError } from "../../protocol/errors.ts";
import type { Commit, Member, MemberResult, Plan } from "../../protocol/plan.ts";
import type { Joining, Member as MemberRecord, PlanRecord, Run, RunPart } from "./record.ts";
import { noVoteOf } from "./run.ts";

export type RunHead = Omit<Run, "parts">;
type CommitHead = Omit<Commit, "members">;

export function planView({
  name,
  createdAt,
  members,
  joining,
  run,
  lastRun: last,
}: PlanRecord): Plan {
  // A replaced sandbox is shown as the member until its successor has joined.
  const coming = joining.filter(({ replaces }) => replaces === null);
  return {
    name,
    createdAt: time(createdAt),
    members: [...members.map(memberView), ...coming.map(joiningView)].sort(byKey),
    ...(run === null ? {} : { running: headView(run) }),
    ...(last === null ? {} : { last: headView(last) }),
  };
}

export function memberView({ key, sandbox, addedAt, committed }: MemberRecord): Member {
  return { key, sandbox, addedAt: time(addedAt), state: "member", committed };
}

function joiningView({ key, sandbox, addedAt }: Joining): Member {
  return { key, sandbox, addedAt: time(addedAt), state: "joining", committed: null };
}

export function commitView(run: Run): Commit {
  const members = run.parts.map((part) => resultOf(run, part)).sort(byKey);
  return { ...headView(run), members };
}

export function headView({ n, kind, mode, startedAt, decision, endedAt }: RunHead): CommitHead {
  return {
    commit: n,
    kind,
    mode,
    outcome: outcomeOf({ kind, decision, endedAt }),
    ...(decision?.error === undefined ? {} : { error: decision.error }),
    startedAt: time(startedAt),
    ...(decision === null ? {} : { decidedAt: time(decision.at) }),
    ...(endedAt === null ? {} : { endedAt: time(endedAt) }),
  };
}

/** Undefined if the run had an effect, or if its result already says why it was aborted. */
export function refusalOf({ n, decision, endedAt, parts }: Run): BerthError | undefined {
  if (endedAt === null || decision === null || decision.go) return undefined;
  const { code = "", message = "", hint } = decision.error ?? {};
  const hinted = hint === undefined ? {} : { hint };
  if (code === "nothing_to_commit" || code === "nothing_to_roll_back") {
    return new BerthError(code, message, { ...hinted, facts: { commit: n } });
  }
  const part = parts.find((candidate) => noVoteOf(candidate)?.code === "lease_held");
  if (code !== "lease_held" || part === undefined) return undefined;
  const { key, sandbox } = part;
  const holder = noVoteOf(part)?.holder;
  return new BerthError(code, message, {
    ...hinted,
    facts: { commit: n, key, sandbox, ...(holder === undefined ? {} : { holder }) },
  });
}

function outcomeOf({
  kind,
  decision,
  endedAt,
}: Pick<RunHead, "kind" | "decision" | "endedAt">): Commit["outcome"] {
  if (decision === null || endedAt === null) return "pending";
  if (!decision.go) return "aborted";
  return kind === "commit" ? "committed" : "rolled_back";
}

function resultOf({ kind }: Run, { key, sandbox, vote, ended }: RunPart): MemberResult {
  const outcome = ended?.outcome ?? "pending";
  const yes = vote !== null && "yes" in vote ? vote.yes : undefined;
  // The checkpoint of a run without effect is deleted, so it is not shown.
  const hasEffect = outcome === "committed" || outcome === "rolled_back";
  const { checkpoint = null, changes = null } = hasEffect && yes !== undefined ? yes : {};
  return {
    key,
    sandbox,
    outcome,
    ...(checkpoint === null ? {} : { checkpoint }),
    ...(changes === null || kind === "rollback" ? {} : { changes }),
    ...(ended?.error === undefined ? {} : { error: ended.error }),
  };
}

function byKey(a: { key: string }, b: { key: string }): number {
  return a.key < b.key ? -1 : 1;
}

function time(ms: number): string {
  return new Date(ms).toISOString();
}
