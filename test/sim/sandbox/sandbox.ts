/**
 * The sandbox's object of a history: the real actor, observed at each commit, and the host of its instances. See
 * simulated-object.ts for what all objects share.
 */
import { SandboxActor } from "../../../src/objects/sandbox/actor.ts";
import type { Host, SqlValue } from "../../../src/objects/sandbox/host.ts";
import type { Facts } from "../../../src/objects/sandbox/store.ts";
import type { Report } from "../../../src/protocol/directory.ts";
import type { ContainerRuntime } from "../../../src/runtime/runtime.ts";
import type { PlatformContainer } from "../../fakes/platform/container.ts";
import { BaseHost, SimulatedObject } from "../simulated-object.ts";
import { SimEngine } from "./engine.ts";
import { SimPlatform } from "./platform.ts";
import { runtimeOver } from "./wire.ts";
import type { World } from "./world.ts";

/** The queries from which a fresh instance learns the newest committed time. */
const readsClock = /FROM (sandbox|lease|metadata)$|^SELECT at FROM event/;

export class SandboxHost extends BaseHost implements Host {
  /** On the platform: the container as this instance sees it. */
  #attached: PlatformContainer<Map<string, string>> | undefined;
  readonly #world: World;

  constructor(world: World) {
    super(world, world.database);
    this.#world = world;
    if (world.engine instanceof SimPlatform) this.#attached = world.engine.machine.attach();
  }

  override sql<Row extends Record<string, SqlValue>>(
    query: string,
    ...bindings: SqlValue[]
  ): Row[] {
    const rows = super.sql<Row>(query, ...bindings);
    if (this.#world.breakage !== "the clock runs backwards" || !readsClock.test(query)) {
      return rows;
    }
    return rows.map((row) => ({ ...row, at: 0 }));
  }

  /** A report leaves the object after its rows are on disk. */
  async sendReport(report: Report): Promise<void> {
    this.refuseWhenReplaced();
    await this.#world.database.flushed();
    this.#world.observer.recordReport(report);
    return this.#world.sendReport(report, this);
  }

  override async deleteAll(): Promise<void> {
    await super.deleteAll();
    this.#world.observer.onWiped();
  }

  openRuntime(): ContainerRuntime {
    const { engine } = this.#world;
    if (engine instanceof SimEngine) return runtimeOver(this.#world, this, engine);
    this.#attached ??= engine.machine.attach();
    return engine.openRuntime(this, this.#attached);
  }
}

class WatchedActor extends SandboxActor {
  readonly #world: World;

  constructor(host: SandboxHost, world: World) {
    super(host);
    this.#world = world;
  }

  override create(facts: Facts): void {
    super.create(facts);
    this.#world.observer.onCommitted(this, "create");
  }

  override commit(...change: Parameters<SandboxActor["commit"]>): void {
    super.commit(...change);
    this.#world.observer.onCommitted(this, change[2]);
  }
}

export class SimSandbox extends SimulatedObject<SandboxActor> {
  readonly #world: World;

  constructor(world: World) {
    super(world, world.database);
    this.#world = world;
  }

  protected override createInstance() {
    const host = new SandboxHost(this.#world);
    const actor = new WatchedActor(host, this.#world);
    this.#world.observer.onLoaded(actor);
    return { host, actor };
  }

  override crash(how: "forgotten" | "dead"): void {
    super.crash(how);
    this.#sleepMachine();
  }

  override sleep(): void {
    super.sleep();
    this.#sleepMachine();
  }

  #sleepMachine(): void {
    const { engine } = this.#world;
    if (engine instanceof SimPlatform && this.host === undefined) engine.machine.sleep();
  }

  protected override wake(actor: SandboxActor): void {
    actor.reconciler.resume();
  }
}
