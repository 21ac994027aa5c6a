/** The Directory of a fleet history: the real actor over rows in memory. */
import { DirectoryActor } from "../../../src/objects/directory/actor.ts";
import { listPage } from "../../../src/objects/directory/list.ts";
import type { SandboxPort } from "../../../src/objects/directory/sandbox-tasks.ts";
import * as lifecycle from "../../../src/objects/sandbox/lifecycle/lifecycle.ts";
import { toResult } from "../../../src/objects/shared/result.ts";
import { sandboxesQuerySchema } from "../../../src/protocol/directory.ts";
import { Database } from "../database.ts";
import { BaseHost, SimulatedObject } from "../simulated-object.ts";
import type { Fleet } from "./fleet.ts";
import { callObject, sandboxTarget } from "./rpc.ts";

export class SimulatedDirectory extends SimulatedObject<DirectoryActor> {
  readonly name = "the directory";
  readonly #fleet: Fleet;

  constructor(fleet: Fleet) {
    super(fleet, new Database(fleet));
    this.#fleet = fleet;
  }

  protected override createInstance() {
    const host = new BaseHost(this.#fleet, this.database);
    return { host, actor: new DirectoryActor(host, (id) => this.#port(host, id)) };
  }

  protected override wake(): void {
    // Its constructor continues what was left unfinished.
  }

  #port(host: BaseHost, id: string): SandboxPort {
    const to = sandboxTarget(this.#fleet, id);
    return {
      make: (call) =>
        callObject(this.#fleet, host, to, "make", (actor) =>
          toResult(() => {
            lifecycle.make(actor, call);
            return actor.outbox.report();
          }),
        ),
      report: () =>
        callObject(this.#fleet, host, to, "report", (actor) =>
          actor.existing === undefined ? undefined : actor.outbox.report(),
        ),
      giveWay: (successor, gate) =>
        callObject(this.#fleet, host, to, "give way", async (actor) => {
          if (actor.existing === undefined) return undefined;
          return toResult(async () => {
            const { breakage } = this.#fleet;
            if (breakage === "a lease does not stop a replacement")
              await lifecycle.endForPlan(actor, "replaced");
            await lifecycle.giveWay(actor, successor, gate);
            if (gate.force === undefined) this.#fleet.watch.gaveWay(id, actor);
            return actor.outbox.report();
          });
        }),
    };
  }
}

export function listAll(host: BaseHost) {
  return listPage(host, sandboxesQuerySchema.parse({ limit: 1000 }), undefined).sandboxes;
}
