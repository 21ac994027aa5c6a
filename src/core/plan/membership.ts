/**
 * Owns who is a member: joining, leaving, replacing. While a run is open all of it is refused, which is what makes
 * the members that a run has read the members that it commits.
 * Does not own telling the sandboxes: `joining` and `leaving` ask for that. Nor whether there is a plan (life.ts).
 */
import { BerthError } from "../../protocol/errors.ts";
import { limits } from "../../protocol/limits.ts";
import type { Fate, Joining, Leaving, Member, PlanRecord } from "./record.ts";

export type Wanted = {
  key: string;
  /** Minted for the case that it is made. */
  sandbox: string;
  makes: boolean;
  /** The member that was found, should it have been destroyed: it is replaced. */
  destroyed?: string;
};

export type Put =
  | { found: Member }
  | { joining: Joining }
  /** Somebody else is being told: look again when that is over. */
  | { wait: true }
  | { refuse: BerthError };

export function put(plan: PlanRecord, wanted: Wanted, now: number): { plan: PlanRecord; put: Put } {
  const same = (put: Put) => ({ plan, put });
  const { key, sandbox, makes, destroyed } = wanted;
  const known = plan.members.find((member) => member.key === key);
  const isKept = makes ? known?.sandbox !== destroyed : known?.sandbox === sandbox;
  if (known !== undefined && isKept) return same({ found: known });
  const busy = planBusy(plan);
  if (busy !== undefined) return same({ refuse: busy });
  const underWay = plan.joining.find((joining) => joining.key === key);
  if (underWay !== undefined) {
    const asks = makes ? underWay.makes : underWay.sandbox === sandbox;
    return same(asks ? { joining: underWay } : { wait: true });
  }
  const elsewhere = [...plan.members, ...plan.joining].find((one) => one.sandbox === sandbox);
  if (elsewhere !== undefined) return same({ refuse: inPlan(plan.name, elsewhere.key) });
  if (plan.leaving.some((one) => one.sandbox === sandbox)) return same({ wait: true });
  if (known === undefined && countOf(plan) >= limits.planMembersMax) {
    return same({
      refuse: new BerthError("too_many", `The plan has ${limits.planMembersMax} members.`, {
        facts: { planMembersMax: limits.planMembersMax },
      }),
    });
  }
  const move = plan.moves + 1;
  const joining = { key, sandbox, addedAt: now, makes, replaces: known?.sandbox ?? null, move };
  return { plan: { ...plan, moves: move, joining: [...plan.joining, joining] }, put: { joining } };
}

/** Its sandbox has heard. A call that comes late finds nobody joining, and changes nothing. */
export function joined(plan: PlanRecord, key: string, sandbox: string): PlanRecord {
  const joining = plan.joining.find((one) => one.key === key && one.sandbox === sandbox);
  if (joining === undefined) return plan;
  const member: Member = { key, sandbox, addedAt: joining.addedAt, committed: null };
  const after = {
    ...plan,
    joining: plan.joining.filter((one) => one !== joining),
    members: [...plan.members.filter((one) => one.key !== key), member],
  };
  return joining.replaces === null ? after : leave(after, [joining.replaces], "keep");
}

/** It cannot be: nobody is replaced. One that was made for it, and is nobody else's, is ended. */
export function notJoined(
  plan: PlanRecord,
  key: string,
  sandbox: string,
  isOurs: boolean,
): PlanRecord {
  const joining = plan.joining.filter((one) => one.key !== key || one.sandbox !== sandbox);
  if (joining.length === plan.joining.length) return plan;
  const ending: Leaving = { sandbox, phase: "end", fate: "force", move: plan.moves };
  return { ...plan, joining, leaving: isOurs ? [...plan.leaving, ending] : plan.leaving };
}

export function remove(
  plan: PlanRecord,
  key: string,
  fate: Fate,
): { plan: PlanRecord; removed: Member } | { wait: true } | { refuse: BerthError } {
  const busy = planBusy(plan);
  if (busy !== undefined) return { refuse: busy };
  if (plan.joining.some((one) => one.key === key)) return { wait: true };
  const removed = plan.members.find((member) => member.key === key);
  if (removed === undefined) {
    return { refuse: new BerthError("not_found", `The plan has no member called ${key}.`) };
  }
  return {
    removed,
    plan: leave(
      { ...plan, members: plan.members.filter((member) => member !== removed) },
      [removed.sandbox],
      fate,
    ),
  };
}

/** Its sandbox knows that it is free. */
export function left(plan: PlanRecord, sandbox: string): PlanRecord {
  return {
    ...plan,
    leaving: plan.leaving.flatMap((one): Leaving[] => {
      if (one.sandbox !== sandbox || one.phase !== "leave") return [one];
      return one.fate === "keep" ? [] : [{ ...one, phase: "end" }];
    }),
  };
}

export function gone(plan: PlanRecord, sandbox: string): PlanRecord {
  return { ...plan, leaving: plan.leaving.filter((one) => one.sandbox !== sandbox) };
}

/** With those on the way in; who takes a place is none more. */
function countOf({ members, joining }: PlanRecord): number {
  return members.length + joining.filter(({ replaces }) => replaces === null).length;
}

/** Whether somebody is on the way in or out: a run waits for that. One that is only ended is out. */
export function isMoving({ joining, leaving }: PlanRecord): boolean {
  return joining.length > 0 || leaving.some(({ phase }) => phase === "leave");
}

export function planBusy({ run }: PlanRecord): BerthError | undefined {
  if (run === null) return undefined;
  return new BerthError("plan_busy", `A ${run.kind} of the plan is running.`, {
    hint: "Wait for its end with GET …/commits/:n?waitMs=25000.",
    facts: { commit: run.n, kind: run.kind },
  });
}

/** Who would lose the lease of a member with its end: nothing is done yet. */
export function memberHeld(
  { key, sandbox }: Pick<Member, "key" | "sandbox">,
  holder: string | undefined,
): BerthError {
  const who = holder === undefined ? "by somebody" : `by ${holder}`;
  return new BerthError("lease_held", `The member ${key} is held ${who}; nothing was done.`, {
    hint: "Wait for the lease to be let go, or end the sandbox all the same with ?force=true.",
    facts: { key, sandbox, ...(holder === undefined ? {} : { holder }) },
  });
}

export function inPlan(plan: string, key?: string): BerthError {
  return new BerthError("in_other_plan", `The sandbox is in the plan ${plan} already.`, {
    hint: "A sandbox is in at most one plan: take it out there first.",
    facts: { plan, ...(key === undefined ? {} : { key }) },
  });
}

export function leave(plan: PlanRecord, sandboxes: readonly string[], fate: Fate): PlanRecord {
  const move = plan.moves + 1;
  const leaving = sandboxes.map((sandbox): Leaving => ({ sandbox, phase: "leave", fate, move }));
  return { ...plan, moves: move, leaving: [...plan.leaving, ...leaving] };
}
