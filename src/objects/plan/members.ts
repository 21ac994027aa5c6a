/**
 * Serves the calls that add and remove members or remove the plan. Each change is decided in one step, and the call returns
 * when all affected sandboxes have confirmed; the plan continues without the caller if that takes too long.
 */
import {
  type MemberRequest,
  memberHeldError,
  openPlan,
  type PlanIdentity,
  startJoin,
  startPlanRemoval,
  startRemoval,
} from "../../core/plan/membership.ts";
import type {
  Disposition,
  Joining,
  PlanRecord,
  Member as StoredMember,
} from "../../core/plan/record.ts";
import { memberView, planView } from "../../core/plan/view.ts";
import { BerthError } from "../../protocol/errors.ts";
import { limits } from "../../protocol/limits.ts";
import type { Member, Plan } from "../../protocol/plan.ts";
import type { NewSandbox } from "../sandbox/lifecycle/lifecycle.ts";
import { createMetadata } from "../sandbox/metadata.ts";
import { type ErrorValue, toBerthError } from "../shared/result.ts";
import { withTimeout } from "../shared/timeout.ts";
import { noSuchPlanError, type PlanActor } from "./actor.ts";

export type PutMemberCall = {
  key: string;
  sandbox: string;
  /** Creates the sandbox, unless the key already has a member. */
  make?: NewSandbox;
  /** Why a new sandbox could not be created; an existing member is still found. */
  createRefusal?: ErrorValue;
};

export type PutMemberResult = { member: Member; made: boolean };

/** `again`: the name was given back in the meantime, so the caller must look it up in the Directory again. */
export async function putPlan(actor: PlanActor, identity: PlanIdentity): Promise<Plan | "again"> {
  actor.resume();
  await waitUntil(actor, () => actor.record?.status !== "removing");
  return openPlan(actor.record, identity) === undefined ? "again" : planView(actor.open(identity));
}

export async function putMember(
  actor: PlanActor,
  { key, sandbox, make, createRefusal: cannot }: PutMemberCall,
): Promise<PutMemberResult> {
  let request: MemberRequest = { key, sandbox, createsSandbox: make !== undefined };
  const end = waitLimit(actor);
  for (;;) {
    const plan = actor.current;
    const { plan: after, decision } = startJoin(plan, request, actor.host.clock());
    if ("refuse" in decision) throw decision.refuse;
    if ("found" in decision) {
      const { found } = decision;
      const mayReplace = request.createsSandbox && plan.run === null;
      if (!mayReplace || !(await isDestroyed(actor, found))) {
        return { member: memberView(found), made: false };
      }
      request = { ...request, destroyed: found.sandbox };
      continue;
    }
    if ("wait" in decision) {
      if (await actor.waitForChange(end)) continue;
      throw membersChangingError();
    }
    if (after !== plan) {
      if (cannot !== undefined) throw toBerthError(cannot);
      // No call is stored that can never succeed.
      if (make !== undefined) createMetadata(make.metadata);
      actor.commit(after, { call: make });
    }
    return waitUntilJoined(actor, decision.joining, end);
  }
}

export async function removeMember(
  actor: PlanActor,
  key: string,
  disposition: Disposition,
): Promise<Member> {
  const end = waitLimit(actor);
  const free = new Set<string>();
  for (;;) {
    const decided = startRemoval(actor.current, key, disposition);
    if ("refuse" in decided) throw decided.refuse;
    if ("wait" in decided) {
      if (await actor.waitForChange(end)) continue;
      throw membersChangingError();
    }
    const { removed } = decided;
    const { sandbox } = removed;
    const unknown = disposition === "destroy" ? withoutKnownFree([removed], free) : [];
    if (unknown.length > 0) {
      await checkHolders(actor, unknown, free);
      continue;
    }
    actor.requests.refusals.forget(sandbox);
    actor.commit(decided.plan);
    const phase = () => actor.record?.leaving.find((other) => other.sandbox === sandbox)?.phase;
    // Once the sandbox has left, its end is certain: a timeout while it ends is a success.
    await waitUntil(actor, () => phase() === undefined, end).catch((error: unknown) => {
      if (phase() === "leave") throw error;
    });
    const refusal = actor.requests.refusals.get(sandbox);
    if (refusal !== undefined) throw notEndedError(key, refusal);
    return memberView(removed);
  }
}

/** Returns the plan as it was before. A repeated call waits for the same removal. */
export async function removePlan(
  actor: PlanActor,
  identity: PlanIdentity,
  disposition: Disposition,
): Promise<Plan> {
  actor.resume();
  const free = new Set<string>();
  const end = waitLimit(actor);
  let before: PlanRecord | undefined = actor.record;
  while (before?.status !== "removing") {
    const plan = actor.open(identity);
    const decided = startPlanRemoval(plan, disposition);
    if ("refuse" in decided) throw decided.refuse;
    if ("plan" in decided) {
      const unknown = disposition === "destroy" ? withoutKnownFree(plan.members, free) : [];
      if (unknown.length === 0) {
        before = plan;
        actor.commit(decided.plan);
        break;
      }
      await checkHolders(actor, unknown, free);
    } else if (!(await actor.waitForChange(end))) throw membersChangingError();
    before = actor.record;
  }
  if (before === undefined) throw noSuchPlanError();
  await waitUntil(actor, () => actor.record?.status !== "removing", end);
  return planView(before);
}

/** If the result is empty, no time has passed since the plan was read, and the caller may decide on what it has read. */
function withoutKnownFree(
  members: readonly StoredMember[],
  free: ReadonlySet<string>,
): readonly StoredMember[] {
  return members.filter(({ sandbox }) => !free.has(sandbox));
}

/** Throws if somebody holds one of the leases, else adds the sandboxes to `free`. The caller must read the plan again. */
async function checkHolders(
  { requests, host, current: { tenant, name, newestRun } }: PlanActor,
  members: readonly StoredMember[],
  free: Set<string>,
): Promise<void> {
  const caller = { tenant, plan: name, run: newestRun };
  for (let start = 0; start < members.length; start += limits.planFinishesMax) {
    const batch = members.slice(start, start + limits.planFinishesMax);
    const holders = await Promise.all(
      batch.map(({ sandbox }) =>
        withTimeout(host, requests.ports.participantOf(sandbox).holder(caller)).catch(() => {
          throw noResponseError(sandbox);
        }),
      ),
    );
    for (const [index, member] of batch.entries()) {
      const result = holders[index];
      if (result === undefined) continue;
      // A refusal means that the sandbox is gone, so nobody holds its lease.
      if ("ok" in result && result.ok !== null) throw memberHeldError(member, result.ok.name);
      free.add(member.sandbox);
    }
  }
}

function noResponseError(sandbox: string): BerthError {
  return new BerthError("unavailable", `The sandbox ${sandbox} did not say who holds its lease.`, {
    hint: "Nothing was changed. Try again, or pass `?force=true`.",
    facts: { sandbox },
  });
}

/** False also if the sandbox does not respond. */
async function isDestroyed(
  { requests, host }: PlanActor,
  { sandbox }: { sandbox: string },
): Promise<boolean> {
  const call = requests.ports.participantOf(sandbox).isDestroyed();
  return withTimeout(host, call).catch(() => false);
}

async function waitUntilJoined(
  actor: PlanActor,
  { key, sandbox, replaces }: Joining,
  end: number,
): Promise<PutMemberResult> {
  const isJoining = () => actor.record?.joining.some((other) => other.sandbox === sandbox) === true;
  await waitUntil(actor, () => !isJoining(), end);
  const member = actor.current.members.find(
    (other) => other.key === key && other.sandbox === sandbox,
  );
  if (member !== undefined) {
    const replaced = replaces === null ? {} : { replaced: replaces };
    return { member: { ...memberView(member), ...replaced }, made: true };
  }
  const refused = actor.requests.refusals.get(sandbox);
  throw refused === undefined ? membersChangingError() : toBerthError(refused);
}

async function waitUntil(
  actor: PlanActor,
  isReached: () => boolean,
  end: number = waitLimit(actor),
): Promise<void> {
  while (!isReached()) if (!(await actor.waitForChange(end))) throw membersChangingError();
}

function notEndedError(key: string, { facts }: ErrorValue): BerthError {
  return new BerthError("lease_held", `The member ${key} has left the plan but was not ended.`, {
    hint: "Its lease was acquired in the meantime. Destroy the sandbox by its id.",
    facts: { ...facts, key },
  });
}

function waitLimit({ host }: PlanActor): number {
  return host.clock() + limits.waitMaxMs;
}

function membersChangingError(): BerthError {
  return new BerthError("unavailable", "The members of the plan are still changing.", {
    hint: "The change continues in the background. See its progress with GET /v1/plans/:plan.",
  });
}
