/**
 * Calls a plan as the Worker does: by its name in the Directory, which is given again if it was given back.
 * See clients.ts for the calls.
 */
import type { PlanIdentity } from "../../../src/core/plan/lifetime.ts";
import * as names from "../../../src/objects/directory/plans.ts";
import type { PlanActor } from "../../../src/objects/plan/actor.ts";
import { putPlan } from "../../../src/objects/plan/members.ts";
import { BerthError } from "../../../src/protocol/errors.ts";
import type { Outcome } from "../simulated-object.ts";
import type { Fleet } from "./fleet.ts";

const roundsMax = 4;

/** Creates the plan unless it exists. */
export async function ensurePlan(fleet: Fleet, number: number): Promise<boolean> {
  const plan = fleet.plan(`p${number}`);
  for (let round = 0; round < roundsMax; round++) {
    const given = await fleet.directory.call(`give the name ${plan.name}`, (_directory, host) =>
      names.putPlanName(host, plan.name),
    );
    if (!("ok" in given)) return false;
    if (given.ok.made) fleet.count("outcome", "a plan was named");
    const put = await plan.call("put", given.ok.createdAt, putPlan);
    if (!("ok" in put)) return false;
    if (put.ok !== "again") return true;
  }
  return false;
}

/** Calls a plan that exists. */
export async function callPlan<T>(
  fleet: Fleet,
  number: number,
  what: string,
  work: (plan: PlanActor, identity: PlanIdentity) => T | Promise<T>,
): Promise<Outcome<T>> {
  const plan = fleet.plan(`p${number}`);
  const name = await fleet.directory.call(`look up ${plan.name}`, (_directory, host) =>
    names.planCreatedAt(host, plan.name),
  );
  if (!("ok" in name)) return name;
  const createdAt = name.ok;
  if (createdAt === undefined) {
    return { refused: new BerthError("not_found", "No such plan for this key.") };
  }
  return plan.call(what, createdAt, (actor, identity) => {
    // A removal opens the plan itself: a repeated one waits for the same end.
    if (what !== "end") actor.open(identity);
    return work(actor, identity);
  });
}
