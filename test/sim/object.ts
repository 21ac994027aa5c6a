/**
 * Owns the object as its callers see it: there is one instance at a time, made when something comes for it, and
 * lost when the plan says so. Does not own what it does (src/objects/sandbox).
 */
import { SandboxActor } from "../../src/objects/sandbox/actor.ts";
import { ExecLog } from "../../src/objects/sandbox/exec-log.ts";
import type { Facts } from "../../src/objects/sandbox/store.ts";
import { BerthError } from "../../src/protocol/errors.ts";
import { Gone, Place } from "./place.ts";
import type { World } from "./world.ts";

export type Outcome<T> = { ok: T } | { refused: BerthError } | { lost: true };

type Instance = { place: Place; actor: SandboxActor; execs: ExecLog };
type OpenCall = { what: string; since: number };

/** The real one, watched at each commit. */
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

export class SimObject {
  readonly open = new Set<OpenCall>();
  readonly #world: World;
  #instance: Instance | undefined;
  #cancelAlarm = () => {};

  constructor(world: World) {
    this.#world = world;
    world.database.onAlarm = () => this.#armed();
  }

  get actor(): SandboxActor | undefined {
    return this.#instance?.actor;
  }

  get place(): Place | undefined {
    return this.#instance?.place;
  }

  /**
   * One request and its answer; `lost` where the caller cannot know what became of it. `told` is called with what
   * leaves the object, also where it does not arrive.
   */
  call<T>(
    what: string,
    work: (actor: SandboxActor, execs: ExecLog) => T | Promise<T>,
    told: (value: T) => void = () => {},
  ): Promise<Outcome<T>> {
    const { schedule } = this.#world;
    const open: OpenCall = { what, since: schedule.now };
    this.open.add(open);
    return new Promise((resolve) => {
      let isSettled = false;
      const settle = (outcome: Outcome<T>) => {
        if (isSettled) return;
        isSettled = true;
        schedule.after(this.#world.delay(), `answered: ${what}`, () => {
          this.open.delete(open);
          resolve(outcome);
        });
      };
      schedule.after(this.#world.delay(), what, () => {
        const { place, actor, execs } = this.#current();
        place.onCut.add(() => settle({ lost: true }));
        void this.#run(place, () => {
          actor.resume();
          return work(actor, execs);
        }).then((outcome) => {
          if ("ok" in outcome) told(outcome.ok);
          settle(this.#world.loses("answer to a client") ? { lost: true } : outcome);
        });
      });
    });
  }

  /** `forgotten`: it goes on beside its successor until it touches its rows. */
  crash(how: "forgotten" | "dead"): void {
    const place = this.#instance?.place;
    if (place === undefined) return;
    this.#instance = undefined;
    this.#world.count("fault", `crash: ${how}`);
    place.cut(how);
    this.#world.database.lose();
    if (how === "forgotten") {
      this.#world.schedule.after(this.#world.random.between(1, 40_000), "it is ended", () =>
        place.cut("dead"),
      );
    }
  }

  async #run<T>(place: Place, work: () => T | Promise<T>): Promise<Outcome<T>> {
    let outcome: Outcome<T>;
    try {
      outcome = { ok: await work() };
    } catch (error) {
      if (error instanceof BerthError) outcome = { refused: error };
      else {
        this.#world.threw("a call", place, error);
        outcome = { lost: true };
      }
    }
    if (place.state === "live" && this.#world.breakage !== "an answer does not wait") {
      await this.#world.database.durable();
    }
    return outcome;
  }

  #current(): Instance {
    if (this.#instance !== undefined) return this.#instance;
    const place = new Place(this.#world);
    const actor = new WatchedActor(place, this.#world);
    this.#instance = { place, actor, execs: new ExecLog(actor) };
    this.#world.observer.loaded(actor);
    return this.#instance;
  }

  /** Alarms come late at times, and one after the other. */
  #armed(): void {
    this.#cancelAlarm();
    const { database, schedule } = this.#world;
    if (database.alarm === undefined || database.isRinging) return;
    const ms = database.alarm - this.#world.clock() + this.#world.alarmDelay();
    this.#cancelAlarm = schedule.after(ms, "the alarm rings", () => void this.#ring());
  }

  async #ring(): Promise<void> {
    const { database } = this.#world;
    const { place, actor } = this.#current();
    database.alarm = undefined;
    database.isRinging = true;
    this.#world.count("outcome", "an alarm rang");
    try {
      actor.resume();
      await actor.alarm();
    } catch (error) {
      if (!(error instanceof Gone)) this.#world.threw("the alarm", place, error);
      return;
    }
    if (place.state === "live") database.rung();
  }
}
