/**
 * Owns how a client reaches a plan, as the door does it: by its name in the Directory, given anew where it was given back.
 * Does not own what is asked (clients.ts).
 */
import type { PlanIdentity } from "../../../src/core/plan/lifetime.ts";
import * as names from "../../../src/objects/directory/plans.ts";
import type { PlanActor } from "../../../src/objects/plan/actor.ts";
import { putPlan } from "../../../src/objects/plan/members.ts";
import { BerthError } from "../../../src/protocol/errors.ts";
import type { Outcome } from "../simulated-object.ts";
import type { Fleet } from "./fleet.ts";

const roundsMax = 4;

/** Made, or found made. */
export async function isThere(fleet: Fleet, number: number): Promise<boolean> {
  const plan = fleet.plan(`p${number}`);
  for (let round = 0; round < roundsMax; round++) {
    const given = await fleet.directory.call(`give the name ${plan.name}`, (_directory, place) =>
      names.putPlanName(place, plan.name),
    );
    if (!("ok" in given)) return false;
    if (given.ok.made) fleet.count("outcome", "a plan was named");
    const put = await plan.call("put", given.ok.createdAt, putPlan);
    if (!("ok" in put)) return false;
    if (put.ok !== "again") return true;
  }
  return false;
}

/** Of one that is there. */
export async function askPlan<T>(
  fleet: Fleet,
  number: number,
  what: string,
  work: (plan: PlanActor, named: PlanIdentity) => T | Promise<T>,
): Promise<Outcome<T>> {
  const plan = fleet.plan(`p${number}`);
  const named = await fleet.directory.call(`look up ${plan.name}`, (_directory, place) =>
    names.planCreatedAt(place, plan.name),
  );
  if (!("ok" in named)) return named;
  const createdAt = named.ok;
  if (createdAt === undefined) {
    return { refused: new BerthError("not_found", "No such plan for this key.") };
  }
  return plan.call(what, createdAt, (actor, as) => {
    // One that is removed opens itself: a repeated removal waits for its end.
    if (what !== "end") actor.open(as);
    return work(actor, as);
  });
}
