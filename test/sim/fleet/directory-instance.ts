/**
 * Owns the Directory of a history: the real actor over rows in memory, asked as the door asks it.
 */

import { DirectoryActor } from "../../../src/objects/directory/actor.ts";
import type { SandboxPort } from "../../../src/objects/directory/sandbox-tasks.ts";
import * as lifecycle from "../../../src/objects/sandbox/lifecycle/lifecycle.ts";
import { toResult } from "../../../src/objects/shared/to-result.ts";
import { BaseHost } from "../base-host.ts";
import { type Outcome, SimulatedObject } from "../simulated-object.ts";
import type { Fleet } from "./fleet.ts";
import { FleetGround } from "./object-host.ts";
import { type Asked, ask } from "./rpc.ts";
import { sandboxAsked } from "./sandbox-asked.ts";

type Instance = { place: BaseHost; directory: DirectoryActor };

export class DirectoryBeing extends SimulatedObject<Instance> {
  readonly name = "the directory";
  readonly ground: FleetGround;
  readonly #fleet: Fleet;

  constructor(fleet: Fleet) {
    const ground = new FleetGround(fleet);
    super(ground);
    this.ground = ground;
    this.#fleet = fleet;
  }

  call<T>(
    what: string,
    work: (directory: DirectoryActor, place: BaseHost) => T | Promise<T>,
  ): Promise<Outcome<T>> {
    return this.request(what, ({ directory, place }) => work(directory, place));
  }

  /** As it is asked for what stands in its rows. */
  get rows(): Asked<BaseHost> {
    return {
      name: this.name,
      call: (what, work) => this.call(what, (_directory, place) => work(place)),
    };
  }

  protected override createInstance(): Instance {
    const place = new BaseHost(this.ground);
    return { place, directory: new DirectoryActor(place, (id) => this.#port(place, id)) };
  }

  protected override wake(): void {
    // It takes up what was left undone in its constructor.
  }

  protected override ring({ directory }: Instance): Promise<void> {
    return directory.alarm();
  }

  #port(place: BaseHost, id: string): SandboxPort {
    const to = sandboxAsked(this.#fleet, id);
    return {
      make: (call) =>
        ask(this.#fleet, place, to, "make", (actor) =>
          toResult(() => {
            lifecycle.make(actor, call);
            return actor.outbox.report();
          }),
        ),
      report: () =>
        ask(this.#fleet, place, to, "report", (actor) =>
          actor.existing === undefined ? undefined : actor.outbox.report(),
        ),
      giveWay: (successor, gate) =>
        ask(this.#fleet, place, to, "give way", async (actor) => {
          if (actor.existing === undefined) return undefined;
          return toResult(async () => {
            const { breakage } = this.#fleet;
            if (breakage === "who is replaced is not asked")
              await lifecycle.endForPlan(actor, "replaced");
            await lifecycle.giveWay(actor, successor, gate);
            if (gate.force === undefined) this.#fleet.watch.gaveWay(id, actor);
            return actor.outbox.report();
          });
        }),
    };
  }
}
