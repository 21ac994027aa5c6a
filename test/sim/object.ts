/**
 * Owns the sandbox's object of a history: the real actor, watched at each commit.
 * Does not own what it does (src/objects/sandbox), nor how it comes and goes (being.ts).
 */
import { SandboxActor } from "../../src/objects/sandbox/actor.ts";
import { ExecLog } from "../../src/objects/sandbox/calls/exec-log.ts";
import type { Facts } from "../../src/objects/sandbox/store.ts";
import { Place } from "./host.ts";
import { Being, type Outcome } from "./instance.ts";
import type { World } from "./world.ts";

export type { Outcome } from "./instance.ts";

type Instance = { place: Place; actor: SandboxActor; execs: ExecLog };

class WatchedActor extends SandboxActor {
  readonly #world: World;

  constructor(place: Place, world: World) {
    super(place);
    this.#world = world;
  }

  override create(facts: Facts): void {
    super.create(facts);
    this.#world.observer.committed(this, "create");
  }

  override commit(...change: Parameters<SandboxActor["commit"]>): void {
    super.commit(...change);
    this.#world.observer.committed(this, change[2]);
  }
}

export class SimObject extends Being<Instance> {
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
    work: (actor: SandboxActor, execs: ExecLog) => T | Promise<T>,
    told?: (value: T) => void,
  ): Promise<Outcome<T>> {
    return this.ask(what, ({ actor, execs }) => work(actor, execs), told);
  }

  protected override fresh(): Instance {
    const place = new Place(this.#world);
    const actor = new WatchedActor(place, this.#world);
    this.#world.observer.loaded(actor);
    return { place, actor, execs: new ExecLog(actor) };
  }

  protected override wake({ actor }: Instance): void {
    actor.pursuit.resume();
  }

  protected override ring({ actor }: Instance): Promise<void> {
    return actor.alarm();
  }
}
