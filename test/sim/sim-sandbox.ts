/**
 * The sandbox's object of a history: the real actor, observed at each commit. See simulated-object.ts for its
 * instances.
 */
import { SandboxActor } from "../../src/objects/sandbox/actor.ts";
import { ExecLog } from "../../src/objects/sandbox/calls/exec-log.ts";
import type { Facts } from "../../src/objects/sandbox/store.ts";
import { SandboxHost } from "./sandbox-host.ts";
import { type Outcome, SimulatedObject } from "./simulated-object.ts";
import type { World } from "./world.ts";

export type { Outcome } from "./simulated-object.ts";

type SandboxInstance = { host: SandboxHost; actor: SandboxActor; execLog: ExecLog };

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

export class SimSandbox extends SimulatedObject<SandboxInstance> {
  readonly #world: World;

  constructor(world: World) {
    super(world);
    this.#world = world;
  }

  get actor(): SandboxActor | undefined {
    return this.instance?.actor;
  }

  call<T>(
    what: string,
    work: (actor: SandboxActor, execLog: ExecLog) => T | Promise<T>,
    onResponse?: (value: T) => void,
  ): Promise<Outcome<T>> {
    return this.request(what, ({ actor, execLog }) => work(actor, execLog), onResponse);
  }

  protected override createInstance(): SandboxInstance {
    const host = new SandboxHost(this.#world);
    const actor = new WatchedActor(host, this.#world);
    this.#world.observer.onLoaded(actor);
    return { host, actor, execLog: new ExecLog(actor) };
  }

  protected override wake({ actor }: SandboxInstance): void {
    actor.reconciler.resume();
  }

  protected override ring({ actor }: SandboxInstance): Promise<void> {
    return actor.alarm();
  }
}
