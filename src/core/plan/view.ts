/**
 * Owns what is told of a plan, of its members and of its runs; and with what a call is refused whose run came to
 * nothing. Does not own the wire (protocol/plan.ts).
 */
import { BerthError } from "../../protocol/errors.ts";
import type { Commit, Member, MemberResult, Plan } from "../../protocol/plan.ts";
import type { Joining, Member as MemberRecord, Part, PlanRecord, Run } from "./record.ts";
import { noOf } from "./run.ts";

export type Head = Omit<Run, "parts">;
type CommitHead = Omit<Commit, "members">;

export function planView({ name, createdAt, members, joining, run, last }: PlanRecord): Plan {
  // Whoever is replaced is the member until the other one is in.
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

export function headView({ n, kind, mode, startedAt, decision, endedAt }: Head): CommitHead {
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

/** Undefined: it did something, or how it was aborted is for the caller to read. */
export function refusalOf({ n, decision, endedAt, parts }: Run): BerthError | undefined {
  if (endedAt === null || decision === null || decision.go) return undefined;
  const { code = "", message = "", hint } = decision.error ?? {};
  const hinted = hint === undefined ? {} : { hint };
  if (code === "nothing_to_commit" || code === "nothing_to_roll_back") {
    return new BerthError(code, message, { ...hinted, facts: { commit: n } });
  }
  const part = parts.find((one) => noOf(one)?.code === "lease_held");
  if (code !== "lease_held" || part === undefined) return undefined;
  const { key, sandbox } = part;
  const holder = noOf(part)?.holder;
  return new BerthError(code, message, {
    ...hinted,
    facts: { commit: n, key, sandbox, ...(holder === undefined ? {} : { holder }) },
  });
}

function outcomeOf({
  kind,
  decision,
  endedAt,
}: Pick<Head, "kind" | "decision" | "endedAt">): Commit["outcome"] {
  if (decision === null || endedAt === null) return "pending";
  if (!decision.go) return "aborted";
  return kind === "commit" ? "committed" : "rolled_back";
}

function resultOf({ kind }: Run, { key, sandbox, vote, ended }: Part): MemberResult {
  const outcome = ended?.outcome ?? "pending";
  const yes = vote !== null && "yes" in vote ? vote.yes : undefined;
  // A tree that was saved for nothing is not kept.
  const isKept = outcome === "committed" || outcome === "rolled_back";
  const { checkpoint = null, changes = null } = isKept && yes !== undefined ? yes : {};
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

function time(at: number): string {
  return new Date(at).toISOString();
}
