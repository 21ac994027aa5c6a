/**
 * Owns the calls that change who is a member, and that end a plan: decided in one step, answered when everybody whom
 * it is about has heard. Does not own telling them (asks.ts), which goes on without the callers.
 */
import { noMetadata, patchMetadata } from "../../core/metadata/patch.ts";
import { type Named, open, removeAll } from "../../core/plan/lifetime.ts";
import { put, remove, type Wanted } from "../../core/plan/membership.ts";
import type { Fate, Joining, PlanRecord } from "../../core/plan/record.ts";
import { memberView, planView } from "../../core/plan/view.ts";
import { BerthError } from "../../protocol/errors.ts";
import { limits } from "../../protocol/limits.ts";
import type { Member, Plan } from "../../protocol/plan.ts";
import type { NewSandbox } from "../sandbox/lifecycle/lifecycle.ts";
import type { Refused } from "../shared/result.ts";
import { inTime } from "../shared/timeout.ts";
import { asError } from "../shared/to-result.ts";
import { noSuchPlan, type PlanActor } from "./actor.ts";
import { askHolders, unasked } from "./holders.ts";

export type PutMember = {
  key: string;
  sandbox: string;
  /** It is made, unless the key has a member already. */
  make?: NewSandbox;
  /** Why nothing new can be made of it. */
  cannot?: Refused;
};

export type MemberPut = { member: Member; made: boolean };

/** `again`: the name was given back meanwhile, and has to be asked for anew. */
export async function putPlan(actor: PlanActor, named: Named): Promise<Plan | "again"> {
  actor.resume();
  await until(actor, () => actor.record?.life !== "removing");
  return open(actor.record, named) === undefined ? "again" : planView(actor.open(named));
}

export async function putMember(
  actor: PlanActor,
  { key, sandbox, make, cannot }: PutMember,
): Promise<MemberPut> {
  let wanted: Wanted = { key, sandbox, makes: make !== undefined };
  const end = endOf(actor);
  for (;;) {
    const plan = actor.here;
    const asked = put(plan, wanted, actor.place.clock());
    if ("refuse" in asked.put) throw asked.put.refuse;
    if ("found" in asked.put) {
      const { found } = asked.put;
      const mayMake = wanted.makes && plan.run === null;
      if (!mayMake || !(await isDestroyed(actor, found))) {
        return { member: memberView(found), made: false };
      }
      wanted = { ...wanted, destroyed: found.sandbox };
      continue;
    }
    if ("wait" in asked.put) {
      if (await actor.changed(end)) continue;
      throw late();
    }
    if (asked.plan !== plan) {
      if (cannot !== undefined) throw asError(cannot);
      if (make !== undefined) refuseMetadata(make);
      actor.commit(asked.plan, { call: make });
    }
    return hasJoined(actor, asked.put.joining, end);
  }
}

/** Before it is decided on: a call that nobody could carry out is not kept. */
function refuseMetadata({ metadata }: NewSandbox): void {
  const made = patchMetadata(noMetadata, metadata, undefined);
  if ("refuse" in made) throw made.refuse;
}

export async function removeMember(actor: PlanActor, key: string, fate: Fate): Promise<Member> {
  const end = endOf(actor);
  const free = new Set<string>();
  for (;;) {
    const asked = remove(actor.here, key, fate);
    if ("refuse" in asked) throw asked.refuse;
    if ("wait" in asked) {
      if (await actor.changed(end)) continue;
      throw late();
    }
    const { removed } = asked;
    const { sandbox } = removed;
    const unknown = fate === "destroy" ? unasked([removed], free) : [];
    if (unknown.length > 0) {
      await askHolders(actor, unknown, free);
      continue;
    }
    actor.asks.refusals.forget(sandbox);
    actor.commit(asked.plan);
    const phaseOf = () => actor.record?.leaving.find((one) => one.sandbox === sandbox)?.phase;
    // Its end is certain once it is free; whether it has come is told by the sandbox.
    await until(actor, () => phaseOf() === undefined, end).catch((error: unknown) => {
      if (phaseOf() === "leave") throw error;
    });
    const kept = actor.asks.refusals.of(sandbox);
    if (kept !== undefined) throw livesOn(key, kept);
    return memberView(removed);
  }
}

/** As it was. A repeated call waits for the same end. */
export async function removePlan(actor: PlanActor, named: Named, fate: Fate): Promise<Plan> {
  actor.resume();
  const free = new Set<string>();
  const end = endOf(actor);
  let was: PlanRecord | undefined = actor.record;
  while (was?.life !== "removing") {
    const plan = actor.open(named);
    const asked = removeAll(plan, fate);
    if ("refuse" in asked) throw asked.refuse;
    if ("plan" in asked) {
      const unknown = fate === "destroy" ? unasked(plan.members, free) : [];
      if (unknown.length === 0) {
        was = plan;
        actor.commit(asked.plan);
        break;
      }
      await askHolders(actor, unknown, free);
    } else if (!(await actor.changed(end))) throw late();
    was = actor.record;
  }
  if (was === undefined) throw noSuchPlan();
  await until(actor, () => actor.record?.life !== "removing", end);
  return planView(was);
}

/** One that cannot be asked is taken to be there. */
async function isDestroyed(
  { asks, place }: PlanActor,
  { sandbox }: { sandbox: string },
): Promise<boolean> {
  const asked = asks.ports.memberOf(sandbox).isDestroyed();
  return inTime(place, asked).catch(() => false);
}

async function hasJoined(
  actor: PlanActor,
  { key, sandbox, replaces }: Joining,
  end: number,
): Promise<MemberPut> {
  const isJoining = () => actor.record?.joining.some((one) => one.sandbox === sandbox) === true;
  await until(actor, () => !isJoining(), end);
  const member = actor.here.members.find((one) => one.key === key && one.sandbox === sandbox);
  if (member !== undefined) {
    const replaced = replaces === null ? {} : { replaced: replaces };
    return { member: { ...memberView(member), ...replaced }, made: true };
  }
  const refused = actor.asks.refusals.of(sandbox);
  throw refused === undefined ? late() : asError(refused);
}

async function until(
  actor: PlanActor,
  holds: () => boolean,
  end: number = endOf(actor),
): Promise<void> {
  while (!holds()) if (!(await actor.changed(end))) throw late();
}

function livesOn(key: string, { facts }: Refused): BerthError {
  return new BerthError("lease_held", `${key} has left the plan, and was not ended.`, {
    hint: "Somebody has taken its lease in this moment: it is to be ended by its own id.",
    facts: { ...facts, key },
  });
}

function endOf({ place }: PlanActor): number {
  return place.clock() + limits.waitMaxMs;
}

function late(): BerthError {
  return new BerthError("unavailable", "The members of the plan are changing, and it takes long.", {
    hint: "It goes on by itself; GET /v1/plans/:plan shows how far it is.",
  });
}
