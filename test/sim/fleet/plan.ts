/**
 * A plan of a fleet history: the real actor over rows in memory, with its calls to other objects. See rpc.ts for
 * its participants.
 */
import type { PlanIdentity } from "../../../src/core/plan/membership.ts";
import type { PlanRecord, Run } from "../../../src/core/plan/record.ts";
import * as names from "../../../src/objects/directory/plans.ts";
import type { PlanActor } from "../../../src/objects/plan/actor.ts";
import { loadRun } from "../../../src/objects/plan/history.ts";
import { putPlan } from "../../../src/objects/plan/members.ts";
import type { PlanPorts } from "../../../src/objects/plan/ports.ts";
import { loadPlan } from "../../../src/objects/plan/rows.ts";
import { toResult } from "../../../src/objects/shared/result.ts";
import { BerthError } from "../../../src/protocol/errors.ts";
import { Database } from "../database.ts";
import { BaseHost, type Outcome, SimulatedObject } from "../simulated-object.ts";
import { type Fleet, tenant } from "./fleet.ts";
import { finishOnce, planActor } from "./fleet-breakages.ts";
import { callObject, participantPort } from "./rpc.ts";

const roundsMax = 4;

export class SimulatedPlan extends SimulatedObject<PlanActor> {
  readonly name: string;
  readonly #fleet: Fleet;

  constructor(fleet: Fleet, name: string) {
    super(fleet, new Database(fleet));
    this.name = name;
    this.#fleet = fleet;
  }

  /** The record as its rows have it. */
  get record(): PlanRecord | undefined {
    return loadPlan(new BaseHost(this.#fleet, this.database))?.plan;
  }

  runOf(n: number): Run | null {
    return loadRun(new BaseHost(this.#fleet, this.database), n);
  }

  /** The plan that was given its name at this time. */
  identity(createdAt: number): PlanIdentity {
    return { tenant, name: this.name, createdAt };
  }

  protected override createInstance() {
    const host = new BaseHost(this.#fleet, this.database);
    return { host, actor: planActor(this.#fleet.breakage, host, this.#ports(host)) };
  }

  protected override wake(actor: PlanActor): void {
    actor.resume();
  }

  #ports(host: BaseHost): PlanPorts {
    const fleet = this.#fleet;
    return {
      participantOf: (id) => finishOnce(fleet.breakage, participantPort(fleet, host, id)),
      directoryOf: () => ({
        make: (call) =>
          callObject(fleet, host, fleet.directory, "make a member", (directory) =>
            toResult(() => directory.make(call)),
          ),
        forgetPlan: (name, createdAt) =>
          callObject(fleet, host, fleet.directory, "forget a plan", (_directory, rows) =>
            toResult(() => {
              names.forgetPlanName(rows, name, createdAt);
              return null;
            }),
          ),
      }),
    };
  }
}

/** Creates the plan unless it exists. */
export async function ensurePlan(fleet: Fleet, number: number): Promise<boolean> {
  const plan = fleet.plan(`p${number}`);
  for (let round = 0; round < roundsMax; round++) {
    const given = await fleet.directory.call(`give the name ${plan.name}`, (_directory, host) =>
      names.putPlanName(host, plan.name),
    );
    if (!("ok" in given)) return false;
    if (given.ok.made) fleet.count("outcome", "a plan was named");
    const identity = plan.identity(given.ok.createdAt);
    const put = await plan.call(`${plan.name}: put`, (actor) => putPlan(actor, identity));
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
  const identity = plan.identity(createdAt);
  return plan.call(`${plan.name}: ${what}`, (actor) => {
    // A removal opens the plan itself: a repeated one waits for the same end.
    if (what !== "end") actor.open(identity);
    return work(actor, identity);
  });
}
