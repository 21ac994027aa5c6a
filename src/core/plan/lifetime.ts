/**
 * Creates and removes plans: a plan exists from the first call that names it until its removal is complete, and may be
 * created again under the same name.
 */
import type { BerthError } from "../../protocol/errors.ts";
import { planBusyError, startLeave } from "./membership.ts";
import type { Disposition, PlanRecord } from "./record.ts";

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
