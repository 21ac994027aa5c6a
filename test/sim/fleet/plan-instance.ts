/**
 * A plan of a fleet history: the real actor over rows in memory, with its calls to other objects. See sandbox-ports.ts for
 * its participants.
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
import { finishOnce, planActor } from "./fleet-breakages.ts";
import { FleetDeps } from "./object-deps.ts";
import { callObject } from "./rpc.ts";
import { participantPort } from "./sandbox-ports.ts";

type Instance = { host: BaseHost; plan: PlanActor };

export class SimulatedPlan extends SimulatedObject<Instance> {
  readonly name: string;
  readonly ground: FleetDeps;
  readonly #fleet: Fleet;

  constructor(fleet: Fleet, name: string) {
    const ground = new FleetDeps(fleet);
    super(ground);
    this.ground = ground;
    this.name = name;
    this.#fleet = fleet;
  }

  /** The record as its rows have it. */
  get record(): PlanRecord | undefined {
    return loadPlan(new BaseHost(this.ground))?.plan;
  }

  runOf(n: number): Run | null {
    return loadRun(new BaseHost(this.ground), n);
  }

  /** Calls the plan that was given its name at this time. */
  call<T>(
    what: string,
    createdAt: number,
    work: (plan: PlanActor, identity: PlanIdentity) => T | Promise<T>,
  ) {
    const identity = { tenant, name: this.name, createdAt };
    return this.request(`${this.name}: ${what}`, ({ plan }) => work(plan, identity));
  }

  protected override createInstance(): Instance {
    const host = new BaseHost(this.ground);
    return { host, plan: planActor(this.#fleet.breakage, host, this.#ports(host)) };
  }

  protected override wake({ plan }: Instance): void {
    plan.resume();
  }

  protected override ring({ plan }: Instance): Promise<void> {
    return plan.alarm();
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
          callObject(fleet, host, fleet.directory.rows, "forget a plan", (rows) =>
            toResult(() => {
              names.forgetPlanName(rows, name, createdAt);
              return null;
            }),
          ),
      }),
    };
  }
}
