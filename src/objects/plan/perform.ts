/**
 * Sends one request of a plan and applies its result. Throws if the outcome is unknown, so that the request is sent again;
 * returns true if the receiver said that its work continues. Results of earlier runs change nothing.
 */
import {
  completeEnd,
  completeJoin,
  completeLeave,
  completePlanRemoval,
  failJoin,
} from "../../core/plan/membership.ts";
import type { MembershipRequest, RunRequest } from "../../core/plan/pending.ts";
import type { PlanRecord } from "../../core/plan/record.ts";
import { failureOf, type RunEvent, stepRun } from "../../core/plan/run.ts";
import { errors } from "../../protocol/errors.ts";
import { limits } from "../../protocol/limits.ts";
import { type ErrorValue, type Result, toBerthError } from "../shared/result.ts";
import { withTimeout } from "../shared/timeout.ts";
import type { PlanActor } from "./actor.ts";
import type { PlanCaller, PlanPorts } from "./ports.ts";
import { loadCreateCall } from "./rows.ts";

export type PlanRequest = RunRequest | MembershipRequest;

type RequestContext = {
  actor: PlanActor;
  ports: PlanPorts;
  plan: PlanRecord;
  caller: PlanCaller;
};

/** The result `again` means that the receiver continues; all others mean nothing. */
type Handlers = {
  [Type in PlanRequest["type"]]: (
    context: RequestContext,
    request: Extract<PlanRequest, { type: Type }>,
  ) => Promise<unknown>;
};

export async function performRequest(
  actor: PlanActor,
  ports: PlanPorts,
  request: PlanRequest,
): Promise<boolean> {
  const { record: plan } = actor;
  if (plan === undefined) return false;
  const caller = { tenant: plan.tenant, plan: plan.name, run: plan.newestRun };
  const handle = handlers[request.type] as (
    context: RequestContext,
    request: PlanRequest,
  ) => Promise<unknown>;
  return (await handle({ actor, ports, plan, caller }, request)) === "again";
}

const handlers: Handlers = {
  async hold({ actor, ports, caller }, { sandbox, by }) {
    const waitMs = Math.max(0, by - actor.host.clock());
    let result: Result<null>;
    try {
      const call = ports.participantOf(sandbox).hold(caller, waitMs);
      result = await withTimeout(actor.host, call, waitMs + limits.directoryRequestMs);
    } catch (error) {
      if (actor.host.clock() < by) throw error;
      result = { refused: { ...notReached, facts: {} } };
    }
    const n = caller.run;
    if ("ok" in result) return applyRunEvent(actor, { type: "held", n, sandbox });
    const vote = { no: failureOf(toBerthError(result.refused)) };
    return applyRunEvent(actor, { type: "voted", n, sandbox, vote });
  },

  async prepare({ actor, ports, caller }, { sandbox }) {
    const kind = actor.record?.run?.kind;
    if (kind === undefined) return undefined;
    const call = ports.participantOf(sandbox).prepare(caller, kind);
    const result = await withTimeout(actor.host, call, limits.planPrepareRequestMs);
    const vote = "ok" in result ? result.ok : { no: failureOf(toBerthError(result.refused)) };
    return applyRunEvent(actor, { type: "voted", n: caller.run, sandbox, vote });
  },

  async finish({ actor, ports, caller }, { sandbox, decision }) {
    const call = ports.participantOf(sandbox).finish(caller, decision);
    const waitMs = limits.waitMaxMs + limits.directoryRequestMs;
    const result = await withTimeout(actor.host, call, waitMs);
    const n = caller.run;
    if ("refused" in result) {
      // A participant cannot refuse a decision, so a final refusal means that the sandbox does not exist any more.
      const error = failureOf(toBerthError(throwIfRetryable(result.refused)));
      const ended = { outcome: "failed" as const, error };
      return applyRunEvent(actor, { type: "ended", n, sandbox, ended });
    }
    if (result.ok === "again") return "again";
    return applyRunEvent(actor, { type: "ended", n, sandbox, ended: result.ok });
  },

  async join({ actor, ports, caller }, { sandbox, joining }) {
    const { key, createsSandbox, addedAt, membershipRevision } = joining;
    // After this long no caller waits any more, and the plan can neither run nor end until the join is over. So a
    // refusal that is normally retried ends the join, too.
    const isOverdue = actor.host.clock() - addedAt >= limits.waitMaxMs;
    const giveUp = (refused: ErrorValue, endsSandbox: boolean) => {
      const final = isOverdue ? refused : throwIfRetryable(refused);
      actor.requests.refusals.remember(sandbox, final);
      return actor.step((plan) => failJoin(plan, key, sandbox, endsSandbox));
    };
    if (createsSandbox) {
      const call = loadCreateCall(actor.host, sandbox);
      if (call === undefined) return giveUp(lostCall, false);
      const made = await withTimeout(actor.host, ports.directoryOf(caller.tenant).make(call));
      // An earlier try whose response was lost may have created the sandbox.
      if ("refused" in made) return giveUp(made.refused, isOverdue);
    }
    const joinCall = ports.participantOf(sandbox).join(caller, membershipRevision);
    const result = await withTimeout(actor.host, joinCall);
    if ("ok" in result) return actor.step((plan) => completeJoin(plan, key, sandbox));
    // A sandbox that is in another plan was put there by somebody who needs it.
    return giveUp(result.refused, createsSandbox && result.refused.code !== "in_other_plan");
  },

  /** A sandbox that does not exist any more has left, too. */
  async leave({ actor, ports, caller }, { sandbox, membershipRevision }) {
    const call = ports.participantOf(sandbox).leave(caller, membershipRevision);
    const result = await withTimeout(actor.host, call);
    if ("refused" in result) throwIfRetryable(result.refused);
    return actor.step((plan) => completeLeave(plan, sandbox));
  },

  /** If somebody has acquired the lease since the removal was decided, the sandbox stays. */
  async end({ actor, ports, caller }, { sandbox, force }) {
    const participant = ports.participantOf(sandbox);
    const waitMs = limits.waitMaxMs + limits.directoryRequestMs;
    if (force) await withTimeout(actor.host, participant.end("left_plan"), waitMs);
    else {
      const result = await withTimeout(actor.host, participant.endUnheld(caller), waitMs);
      if ("refused" in result) {
        if (isHeld(result.refused)) actor.requests.refusals.remember(sandbox, result.refused);
        else throwIfRetryable(result.refused);
      }
    }
    return actor.step((plan) => completeEnd(plan, sandbox));
  },

  async unregister({ actor, ports, plan: { tenant, name, createdAt } }) {
    const call = ports.directoryOf(tenant).forgetPlan(name, createdAt);
    const result = await withTimeout(actor.host, call);
    if ("refused" in result) throw toBerthError(result.refused);
    return actor.step(completePlanRemoval);
  },
};

export function isHeld({ code }: ErrorValue): boolean {
  return code === "lease_held" || code === "lease_pending";
}

function applyRunEvent(actor: PlanActor, event: RunEvent): void {
  actor.step((plan, now) => stepRun(plan, event, now));
}

/** Throws a temporary failure, so that the request is sent again and nothing follows from it. */
function throwIfRetryable(refused: ErrorValue): ErrorValue {
  if (errors[refused.code].retryable) throw toBerthError(refused);
  return refused;
}

const lostCall: ErrorValue = {
  code: "internal",
  message: "The call that describes the new member was lost.",
  hint: "Nothing was created. Add the member again.",
  facts: {},
};

const notReached = {
  code: "unavailable",
  message: "The sandbox did not respond in time.",
} as const;
