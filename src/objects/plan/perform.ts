/**
 * Owns one question of a plan and what its answer changes. It throws where nobody knows what became of it, and is
 * then asked again; `again` where it was answered that it goes on. What comes after its time is not waited for, an
 * answer of an earlier run is dropped.
 */
import { removed } from "../../core/plan/lifetime.ts";
import { gone, joined, left, notJoined } from "../../core/plan/membership.ts";
import type { Ask, MoveAsk } from "../../core/plan/pending.ts";
import type { PlanRecord } from "../../core/plan/record.ts";
import { failureOf, type RunEvent, stepRun } from "../../core/plan/run.ts";
import { errors } from "../../protocol/errors.ts";
import { limits } from "../../protocol/limits.ts";
import type { Answer, Refused } from "../shared/result.ts";
import { inTime } from "../shared/timeout.ts";
import { asError } from "../shared/to-result.ts";
import type { PlanActor } from "./actor.ts";
import type { Asking, Ports } from "./ports.ts";
import { callOf } from "./rows.ts";

export type Question = Ask | MoveAsk;
type Of<Type extends Question["type"]> = Extract<Question, { type: Type }>;

type Performed = "again" | undefined;

export async function perform(actor: PlanActor, ports: Ports, ask: Question): Promise<Performed> {
  const { record } = actor;
  if (record === undefined) return undefined;
  const asking: Asking = { tenant: record.tenant, plan: record.name, run: record.newest };
  switch (ask.type) {
    case "hold":
      await hold(actor, ports, ask, asking);
      return undefined;
    case "prepare":
      await prepare(actor, ports, ask, asking);
      return undefined;
    case "finish":
      return finish(actor, ports, ask, asking);
    case "join":
      await join(actor, ports, ask, asking);
      return undefined;
    case "leave":
      await leave(actor, ports, ask, asking);
      return undefined;
    case "end":
      await end(actor, ports, ask, asking);
      return undefined;
    case "unregister":
      await unregister(actor, ports, record);
      return undefined;
  }
}

async function unregister(
  actor: PlanActor,
  ports: Ports,
  { tenant, name, createdAt }: PlanRecord,
): Promise<void> {
  const asked = ports.directoryOf(tenant).forgetPlan(name, createdAt);
  const told = await inTime(actor.place, asked);
  if ("refused" in told) throw asError(told.refused);
  actor.step(removed);
}

async function hold(
  actor: PlanActor,
  ports: Ports,
  { sandbox, by }: Of<"hold">,
  asking: Asking,
): Promise<void> {
  const waitMs = Math.max(0, by - actor.place.clock());
  let answer: Answer<null>;
  try {
    const asked = ports.memberOf(sandbox).hold(asking, waitMs);
    answer = await inTime(actor.place, asked, waitMs + limits.directoryAskMs);
  } catch (error) {
    if (actor.place.clock() < by) throw error;
    answer = { refused: { ...away, facts: {} } };
  }
  const n = asking.run;
  if ("ok" in answer) return apply(actor, { type: "held", n, sandbox });
  const vote = { no: failureOf(asError(answer.refused)) };
  apply(actor, { type: "voted", n, sandbox, vote });
}

async function prepare(
  actor: PlanActor,
  ports: Ports,
  { sandbox }: Of<"prepare">,
  asking: Asking,
): Promise<void> {
  const kind = actor.record?.run?.kind;
  if (kind === undefined) return;
  const asked = ports.memberOf(sandbox).prepare(asking, kind);
  const answer = await inTime(actor.place, asked, limits.planPrepareAskMs);
  const vote = "ok" in answer ? answer.ok : { no: failureOf(asError(answer.refused)) };
  apply(actor, { type: "voted", n: asking.run, sandbox, vote });
}

async function finish(
  actor: PlanActor,
  ports: Ports,
  { sandbox, verdict }: Of<"finish">,
  asking: Asking,
): Promise<Performed> {
  const asked = ports.memberOf(sandbox).finish(asking, verdict);
  const answer = await inTime(actor.place, asked, limits.waitMaxMs + limits.directoryAskMs);
  if ("refused" in answer) {
    // What was decided is not refused by anybody who is there.
    const error = failureOf(asError(onlyForGood(answer.refused)));
    const ended = { outcome: "failed" as const, error };
    apply(actor, { type: "ended", n: asking.run, sandbox, ended });
    return undefined;
  }
  if (answer.ok === "again") return "again";
  apply(actor, { type: "ended", n: asking.run, sandbox, ended: answer.ok });
  return undefined;
}

async function join(
  actor: PlanActor,
  ports: Ports,
  { sandbox, joining }: Of<"join">,
  asking: Asking,
): Promise<void> {
  const { key, makes, addedAt } = joining;
  // Nobody waits for it any more, and until it is in or out the plan neither runs nor ends.
  const isOld = actor.place.clock() - addedAt >= limits.waitMaxMs;
  const cannot = (refused: Refused, isOurs: boolean) => {
    actor.asks.refusals.keep(sandbox, isOld ? refused : onlyForGood(refused));
    actor.step((plan) => notJoined(plan, key, sandbox, isOurs));
  };
  if (makes) {
    const call = callOf(actor.place, sandbox);
    if (call === undefined) return cannot(lostCall, false);
    const made = await inTime(actor.place, ports.directoryOf(asking.tenant).make(call));
    // An earlier try of which nobody heard may have made it.
    if ("refused" in made) return cannot(made.refused, isOld);
  }
  const answer = await inTime(actor.place, ports.memberOf(sandbox).join(asking, joining.move));
  if ("ok" in answer) return actor.step((plan) => joined(plan, key, sandbox));
  // Whoever is another plan's was taken there by somebody who wants it.
  cannot(answer.refused, makes && answer.refused.code !== "in_other_plan");
}

/** Whoever is gone is free. */
async function leave(
  actor: PlanActor,
  ports: Ports,
  { sandbox, move }: Of<"leave">,
  asking: Asking,
): Promise<void> {
  const answer = await inTime(actor.place, ports.memberOf(sandbox).leave(asking, move));
  if ("refused" in answer) onlyForGood(answer.refused);
  actor.step((plan) => left(plan, sandbox));
}

/** Who has taken its lease since it was decided keeps it, and the sandbox with it. */
async function end(
  actor: PlanActor,
  ports: Ports,
  { sandbox, force }: Of<"end">,
  asking: Asking,
): Promise<void> {
  const member = ports.memberOf(sandbox);
  const waitMs = limits.waitMaxMs + limits.directoryAskMs;
  if (force) await inTime(actor.place, member.end("left_plan"), waitMs);
  else {
    const answer = await inTime(actor.place, member.endUnheld(asking), waitMs);
    if ("refused" in answer) {
      if (isHeld(answer.refused)) actor.asks.refusals.keep(sandbox, answer.refused);
      else onlyForGood(answer.refused);
    }
  }
  actor.step((plan) => gone(plan, sandbox));
}

export function isHeld({ code }: Refused): boolean {
  return code === "lease_held" || code === "lease_pending";
}

function apply(actor: PlanActor, event: RunEvent): void {
  actor.step((plan, now) => stepRun(plan, event, now));
}

/** What passes by itself is asked again, and nothing follows from it. */
function onlyForGood(refused: Refused): Refused {
  if (errors[refused.code].retryable) throw asError(refused);
  return refused;
}

const lostCall: Refused = {
  code: "internal",
  message: "What the member was to be made of is not known any more.",
  hint: "Nothing was made: ask for it again.",
  facts: {},
};

const away = {
  code: "unavailable",
  message: "The sandbox could not be asked in time.",
} as const;
