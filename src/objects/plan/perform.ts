/**
 * Sends one request of a plan and applies its result. Throws if the outcome is unknown, so that the request is sent again;
 * returns `again` if the receiver said that its work continues. Results of earlier runs change nothing.
 */
import { completePlanRemoval } from "../../core/plan/lifetime.ts";
import { completeEnd, completeJoin, completeLeave, failJoin } from "../../core/plan/membership.ts";
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
type RequestOfType<Type extends PlanRequest["type"]> = Extract<PlanRequest, { type: Type }>;

type RequestOutcome = "again" | undefined;

export async function performRequest(
  actor: PlanActor,
  ports: PlanPorts,
  request: PlanRequest,
): Promise<RequestOutcome> {
  const { record } = actor;
  if (record === undefined) return undefined;
  const caller: PlanCaller = { tenant: record.tenant, plan: record.name, run: record.newestRun };
  switch (request.type) {
    case "hold":
      await hold(actor, ports, request, caller);
      return undefined;
    case "prepare":
      await prepare(actor, ports, request, caller);
      return undefined;
    case "finish":
      return finish(actor, ports, request, caller);
    case "join":
      await join(actor, ports, request, caller);
      return undefined;
    case "leave":
      await leave(actor, ports, request, caller);
      return undefined;
    case "end":
      await end(actor, ports, request, caller);
      return undefined;
    case "unregister":
      await unregister(actor, ports, record);
      return undefined;
  }
}

async function unregister(
  actor: PlanActor,
  ports: PlanPorts,
  { tenant, name, createdAt }: PlanRecord,
): Promise<void> {
  const call = ports.directoryOf(tenant).forgetPlan(name, createdAt);
  const result = await withTimeout(actor.host, call);
  if ("refused" in result) throw toBerthError(result.refused);
  actor.step(completePlanRemoval);
}

async function hold(
  actor: PlanActor,
  ports: PlanPorts,
  { sandbox, by }: RequestOfType<"hold">,
  caller: PlanCaller,
): Promise<void> {
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
  applyRunEvent(actor, { type: "voted", n, sandbox, vote });
}

async function prepare(
  actor: PlanActor,
  ports: PlanPorts,
  { sandbox }: RequestOfType<"prepare">,
  caller: PlanCaller,
): Promise<void> {
  const kind = actor.record?.run?.kind;
  if (kind === undefined) return;
  const call = ports.participantOf(sandbox).prepare(caller, kind);
  const result = await withTimeout(actor.host, call, limits.planPrepareRequestMs);
  const vote = "ok" in result ? result.ok : { no: failureOf(toBerthError(result.refused)) };
  applyRunEvent(actor, { type: "voted", n: caller.run, sandbox, vote });
}

async function finish(
  actor: PlanActor,
  ports: PlanPorts,
  { sandbox, decision }: RequestOfType<"finish">,
  caller: PlanCaller,
): Promise<RequestOutcome> {
  const call = ports.participantOf(sandbox).finish(caller, decision);
  const result = await withTimeout(actor.host, call, limits.waitMaxMs + limits.directoryRequestMs);
  if ("refused" in result) {
    // A participant cannot refuse a decision, so a final refusal means that the sandbox does not exist any more.
    const error = failureOf(toBerthError(throwIfRetryable(result.refused)));
    const ended = { outcome: "failed" as const, error };
    applyRunEvent(actor, { type: "ended", n: caller.run, sandbox, ended });
    return undefined;
  }
  if (result.ok === "again") return "again";
  applyRunEvent(actor, { type: "ended", n: caller.run, sandbox, ended: result.ok });
  return undefined;
}

async function join(
  actor: PlanActor,
  ports: PlanPorts,
  { sandbox, joining }: RequestOfType<"join">,
  caller: PlanCaller,
): Promise<void> {
  const { key, createsSandbox, addedAt, membershipRevision } = joining;
  // After this long no caller waits any more, and the plan can neither run nor end until the join is over. So a
  // refusal that is normally retried ends the join, too.
  const isOverdue = actor.host.clock() - addedAt >= limits.waitMaxMs;
  const giveUp = (refused: ErrorValue, endsSandbox: boolean) => {
    const final = isOverdue ? refused : throwIfRetryable(refused);
    actor.requests.refusals.remember(sandbox, final);
    actor.step((plan) => failJoin(plan, key, sandbox, endsSandbox));
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
  giveUp(result.refused, createsSandbox && result.refused.code !== "in_other_plan");
}

/** A sandbox that does not exist any more has left, too. */
async function leave(
  actor: PlanActor,
  ports: PlanPorts,
  { sandbox, membershipRevision }: RequestOfType<"leave">,
  caller: PlanCaller,
): Promise<void> {
  const call = ports.participantOf(sandbox).leave(caller, membershipRevision);
  const result = await withTimeout(actor.host, call);
  if ("refused" in result) throwIfRetryable(result.refused);
  actor.step((plan) => completeLeave(plan, sandbox));
}

/** If somebody has acquired the lease since the removal was decided, the sandbox stays. */
async function end(
  actor: PlanActor,
  ports: PlanPorts,
  { sandbox, force }: RequestOfType<"end">,
  caller: PlanCaller,
): Promise<void> {
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
  actor.step((plan) => completeEnd(plan, sandbox));
}

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
