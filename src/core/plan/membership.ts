/**
 * Decides who joins, leaves and is replaced in a plan, and when a plan begins and ends. Members change only while no run
 * is open, so that a run commits exactly the members that it has read.
 */
import { BerthError } from "../../protocol/errors.ts";
import { limits } from "../../protocol/limits.ts";
import type { Disposition, Joining, Leaving, Member, PlanRecord } from "./record.ts";

export type MemberRequest = {
  key: string;
  /** The sandbox to add, or the id of the one that would be created. */
  sandbox: string;
  createsSandbox: boolean;
  /** The current member's sandbox if the caller has found it destroyed: it is replaced. */
  destroyed?: string;
};

export type JoinDecision =
  | { found: Member }
  | { joining: Joining }
  /** Another change of this member is in progress: decide again after it. */
  | { wait: true }
  | { refuse: BerthError };

export function startJoin(
  plan: PlanRecord,
  request: MemberRequest,
  now: number,
): { plan: PlanRecord; decision: JoinDecision } {
  const unchanged = (decision: JoinDecision) => ({ plan, decision });
  const { key, sandbox, createsSandbox, destroyed } = request;
  const member = plan.members.find((other) => other.key === key);
  const isWanted = createsSandbox ? member?.sandbox !== destroyed : member?.sandbox === sandbox;
  if (member !== undefined && isWanted) return unchanged({ found: member });
  const busy = planBusyError(plan);
  if (busy !== undefined) return unchanged({ refuse: busy });
  const current = plan.joining.find((joining) => joining.key === key);
  if (current !== undefined) {
    const isSame = createsSandbox ? current.createsSandbox : current.sandbox === sandbox;
    return unchanged(isSame ? { joining: current } : { wait: true });
  }
  const elsewhere = [...plan.members, ...plan.joining].find((other) => other.sandbox === sandbox);
  if (elsewhere !== undefined) {
    return unchanged({ refuse: inOtherPlanError(plan.name, elsewhere.key) });
  }
  if (plan.leaving.some((other) => other.sandbox === sandbox)) return unchanged({ wait: true });
  if (member === undefined && countMembers(plan) >= limits.planMembersMax) {
    return unchanged({
      refuse: new BerthError("too_many", `The plan has ${limits.planMembersMax} members.`, {
        facts: { planMembersMax: limits.planMembersMax },
      }),
    });
  }
  const membershipRevision = plan.membershipRevision + 1;
  const joining: Joining = {
    key,
    sandbox,
    addedAt: now,
    createsSandbox,
    replaces: member?.sandbox ?? null,
    membershipRevision,
  };
  return {
    plan: { ...plan, membershipRevision, joining: [...plan.joining, joining] },
    decision: { joining },
  };
}

/** Makes the sandbox a member once it has agreed. Changes nothing if it is not joining any more. */
export function completeJoin(plan: PlanRecord, key: string, sandbox: string): PlanRecord {
  const joining = plan.joining.find((other) => other.key === key && other.sandbox === sandbox);
  if (joining === undefined) return plan;
  const member: Member = { key, sandbox, addedAt: joining.addedAt, committed: null };
  const after = {
    ...plan,
    joining: plan.joining.filter((other) => other !== joining),
    members: [...plan.members.filter((other) => other.key !== key), member],
  };
  return joining.replaces === null ? after : startLeave(after, [joining.replaces], "keep");
}

/** Drops a join that cannot succeed; the present member stays. `endsSandbox`: the sandbox was created only for this. */
export function failJoin(
  plan: PlanRecord,
  key: string,
  sandbox: string,
  endsSandbox: boolean,
): PlanRecord {
  const joining = plan.joining.filter((other) => other.key !== key || other.sandbox !== sandbox);
  if (joining.length === plan.joining.length) return plan;
  const { membershipRevision } = plan;
  const ending: Leaving = { sandbox, phase: "end", disposition: "force", membershipRevision };
  return { ...plan, joining, leaving: endsSandbox ? [...plan.leaving, ending] : plan.leaving };
}

export function startRemoval(
  plan: PlanRecord,
  key: string,
  disposition: Disposition,
): { plan: PlanRecord; removed: Member } | { wait: true } | { refuse: BerthError } {
  const busy = planBusyError(plan);
  if (busy !== undefined) return { refuse: busy };
  if (plan.joining.some((joining) => joining.key === key)) return { wait: true };
  const removed = plan.members.find((member) => member.key === key);
  if (removed === undefined) {
    return { refuse: new BerthError("not_found", `The plan has no member \`${key}\`.`) };
  }
  const members = plan.members.filter((member) => member !== removed);
  return { removed, plan: startLeave({ ...plan, members }, [removed.sandbox], disposition) };
}

function startLeave(
  plan: PlanRecord,
  sandboxes: readonly string[],
  disposition: Disposition,
): PlanRecord {
  const membershipRevision = plan.membershipRevision + 1;
  const leaving = sandboxes.map(
    (sandbox): Leaving => ({ sandbox, phase: "leave", disposition, membershipRevision }),
  );
  return { ...plan, membershipRevision, leaving: [...plan.leaving, ...leaving] };
}

/** The sandbox knows that it is out of the plan. */
export function completeLeave(plan: PlanRecord, sandbox: string): PlanRecord {
  return {
    ...plan,
    leaving: plan.leaving.flatMap((leaving): Leaving[] => {
      if (leaving.sandbox !== sandbox || leaving.phase !== "leave") return [leaving];
      return leaving.disposition === "keep" ? [] : [{ ...leaving, phase: "end" }];
    }),
  };
}

/** The sandbox has ended, or stays because somebody holds its lease. */
export function completeEnd(plan: PlanRecord, sandbox: string): PlanRecord {
  return { ...plan, leaving: plan.leaving.filter((leaving) => leaving.sandbox !== sandbox) };
}

/** Counts joining sandboxes too, except those that replace a member. */
function countMembers({ members, joining }: PlanRecord): number {
  return members.length + joining.filter(({ replaces }) => replaces === null).length;
}

/** A run waits while this is true. Sandboxes that only have to be ended are not members any more. */
export function isMembershipChanging({ joining, leaving }: PlanRecord): boolean {
  return joining.length > 0 || leaving.some(({ phase }) => phase === "leave");
}

export function planBusyError({ run }: PlanRecord): BerthError | undefined {
  if (run === null) return undefined;
  return new BerthError("plan_busy", `A ${run.kind} of the plan is running.`, {
    hint: "Wait for its end with GET …/commits/:n?waitMs=25000.",
    facts: { commit: run.n, kind: run.kind },
  });
}

/** Refuses to end a member whose lease is held or waited for. */
export function memberHeldError(
  { key, sandbox }: Pick<Member, "key" | "sandbox">,
  holder: string | undefined,
): BerthError {
  const by = holder === undefined ? "somebody" : holder;
  return new BerthError(
    "lease_held",
    `The lease of the member ${key} is held by ${by}. Nothing was changed.`,
    {
      hint: "Wait until the lease is released, or end the sandbox anyway with `?force=true`.",
      facts: { key, sandbox, ...(holder === undefined ? {} : { holder }) },
    },
  );
}

export function inOtherPlanError(plan: string, key?: string): BerthError {
  return new BerthError("in_other_plan", `The sandbox is already in the plan ${plan}.`, {
    hint: "A sandbox can be in one plan only. Remove it from that plan first.",
    facts: { plan, ...(key === undefined ? {} : { key }) },
  });
}

/** The Directory gives the name together with `createdAt`, which tells two plans of one name apart. */
export type PlanIdentity = Pick<PlanRecord, "tenant" | "name" | "createdAt">;

/** Undefined if this plan was removed or is being removed. */
export function openPlan(
  plan: PlanRecord | undefined,
  identity: PlanIdentity,
): PlanRecord | undefined {
  const { tenant, name, createdAt } = identity;
  if (plan === undefined) {
    return {
      tenant,
      name,
      createdAt,
      status: "here",
      newestRun: 0,
      membershipRevision: 0,
      members: [],
      joining: [],
      leaving: [],
      run: null,
      lastRun: null,
    };
  }
  if (plan.status === "removing") return undefined;
  if (createdAt > plan.createdAt) return { ...plan, createdAt, status: "here" };
  return plan.status === "here" ? plan : undefined;
}

/** Releases all members; the name follows when they have left. `wait`: somebody is still joining. */
export function startPlanRemoval(
  plan: PlanRecord,
  disposition: Disposition,
): { plan: PlanRecord } | { wait: true } | { refuse: BerthError } {
  const busy = planBusyError(plan);
  if (busy !== undefined) return { refuse: busy };
  if (plan.joining.length > 0) return { wait: true };
  const members = plan.members.map(({ sandbox }) => sandbox);
  return { plan: startLeave({ ...plan, status: "removing", members: [] }, members, disposition) };
}

/** Forgets the runs but keeps the counters, so that a late step of this plan stays late for its successor. */
export function completePlanRemoval(plan: PlanRecord): PlanRecord {
  return plan.status === "removing" ? { ...plan, status: "gone", lastRun: null } : plan;
}
