/**
 * Owns a plan of a history: the real actor over rows in memory, asked as the door asks it, and what it may ask of others.
 * Does not own what members do (sandbox-asked.ts).
 */
import type { PlanIdentity } from "../../../src/core/plan/lifetime.ts";
import type { PlanRecord, Run } from "../../../src/core/plan/record.ts";
import * as names from "../../../src/objects/directory/plans.ts";
import type { PlanActor } from "../../../src/objects/plan/actor.ts";
import { loadRun } from "../../../src/objects/plan/history.ts";
import type { PlanPorts } from "../../../src/objects/plan/ports.ts";
import { loadPlan } from "../../../src/objects/plan/rows.ts";
import { toResult } from "../../../src/objects/shared/to-result.ts";
import { BaseHost } from "../base-host.ts";
import { SimulatedObject } from "../simulated-object.ts";
import { type Fleet, tenant } from "./fleet.ts";
import { once, planActor } from "./fleet-breakages.ts";
import { FleetGround } from "./object-host.ts";
import { ask } from "./rpc.ts";
import { memberOf } from "./sandbox-asked.ts";

type Instance = { place: BaseHost; plan: PlanActor };

export class PlanBeing extends SimulatedObject<Instance> {
  readonly name: string;
  readonly ground: FleetGround;
  readonly #fleet: Fleet;

  constructor(fleet: Fleet, name: string) {
    const ground = new FleetGround(fleet);
    super(ground);
    this.ground = ground;
    this.name = name;
    this.#fleet = fleet;
  }

  /** What its rows say. */
  get record(): PlanRecord | undefined {
    return loadPlan(new BaseHost(this.ground))?.plan;
  }

  runOf(n: number): Run | null {
    return loadRun(new BaseHost(this.ground), n);
  }

  /** As it was named at that time. */
  call<T>(
    what: string,
    createdAt: number,
    work: (plan: PlanActor, named: PlanIdentity) => T | Promise<T>,
  ) {
    const named = { tenant, name: this.name, createdAt };
    return this.request(`${this.name}: ${what}`, ({ plan }) => work(plan, named));
  }

  protected override createInstance(): Instance {
    const place = new BaseHost(this.ground);
    return { place, plan: planActor(this.#fleet.breakage, place, this.#ports(place)) };
  }

  protected override wake({ plan }: Instance): void {
    plan.resume();
  }

  protected override ring({ plan }: Instance): Promise<void> {
    return plan.alarm();
  }

  #ports(place: BaseHost): PlanPorts {
    const fleet = this.#fleet;
    return {
      participantOf: (id) => once(fleet.breakage, memberOf(fleet, place, id)),
      directoryOf: () => ({
        make: (call) =>
          ask(fleet, place, fleet.directory, "make a member", (directory) =>
            toResult(() => directory.make(call)),
          ),
        forgetPlan: (name, createdAt) =>
          ask(fleet, place, fleet.directory.rows, "forget a plan", (rows) =>
            toResult(() => {
              names.forgetPlanName(rows, name, createdAt);
              return null;
            }),
          ),
      }),
    };
  }
}
