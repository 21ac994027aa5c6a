/**
 * Owns when there is a plan: from the first call that names it to the end of its removal, and again under the same
 * name. Does not own the name itself: the Directory gives it, with the time by which two of one name are told apart.
 */
import type { BerthError } from "../../protocol/errors.ts";
import { leave, planBusy } from "./membership.ts";
import type { Fate, PlanRecord } from "./record.ts";

export type Named = Pick<PlanRecord, "tenant" | "name" | "createdAt">;

/** Undefined: what was named is no more, or not for long. */
export function open(plan: PlanRecord | undefined, named: Named): PlanRecord | undefined {
  const { tenant, name, createdAt } = named;
  if (plan === undefined) {
    return {
      tenant,
      name,
      createdAt,
      life: "here",
      newest: 0,
      moves: 0,
      members: [],
      joining: [],
      leaving: [],
      run: null,
      last: null,
    };
  }
  if (plan.life === "removing") return undefined;
  if (createdAt > plan.createdAt) return { ...plan, createdAt, life: "here" };
  return plan.life === "here" ? plan : undefined;
}

/** Its members are let go, and its name after them. */
export function removeAll(
  plan: PlanRecord,
  fate: Fate,
): { plan: PlanRecord } | { wait: true } | { refuse: BerthError } {
  const busy = planBusy(plan);
  if (busy !== undefined) return { refuse: busy };
  if (plan.joining.length > 0) return { wait: true };
  const members = plan.members.map(({ sandbox }) => sandbox);
  return { plan: leave({ ...plan, life: "removing", members: [] }, members, fate) };
}

/** Its name is given back. What it ran is forgotten, the numbers are not: a late step of it must stay late. */
export function removed(plan: PlanRecord): PlanRecord {
  return plan.life === "removing" ? { ...plan, life: "gone", last: null } : plan;
}
