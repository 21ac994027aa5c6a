/**
 * An object as its callers see it: it has one instance at a time, created on demand and lost when the history says
 * so. Each instance has a host that can be cut off.
 */
import type { ObjectHost, SqlValue } from "../../src/objects/shared/host.ts";
import { ObjectClock } from "../../src/objects/shared/object-clock.ts";
import { BerthError } from "../../src/protocol/errors.ts";
import type { Database } from "./database.ts";
import { InstanceReplaced, type Simulation } from "./simulation.ts";

const beatMs = 1_000;

/**
 * The host of one instance. It can be cut off at any moment; a forgotten instance runs on until it touches its rows, as
 * the platform allows.
 */
export class BaseHost implements ObjectHost {
  state: "live" | "forgotten" | "dead" = "live";
  /** Its last writes were lost with it: nothing that it sends leaves any more. */
  isMuted = false;
  timers = 0;
  backgrounds = 0;
  /** Called when the alarm should have rung. */
  onOverdue: () => void = () => {};
  /** Called when this instance is cut off. */
  readonly onCut = new Set<() => void>();
  readonly createdAt: number;
  readonly #simulation: Simulation;
  readonly #database: Database;
  readonly #clock: ObjectClock;
  #isBeating = false;

  constructor(simulation: Simulation, database: Database) {
    this.#simulation = simulation;
    this.#database = database;
    this.createdAt = simulation.clock();
    this.#clock = new ObjectClock(() => simulation.clock());
  }

  sql<Row extends Record<string, SqlValue>>(query: string, ...bindings: SqlValue[]): Row[] {
    this.refuseWhenReplaced();
    return this.#database.sql<Row>(query, ...bindings);
  }

  transaction<T>(work: () => T): T {
    this.refuseWhenReplaced();
    return this.#database.transaction(work);
  }

  setAlarm(time: number | undefined): void {
    this.refuseWhenReplaced();
    const rings = time === undefined ? undefined : this.#clock.toWall(time);
    this.#database.setAlarm(time, rings);
  }

  flush(): Promise<void> {
    this.refuseWhenReplaced();
    if (this.#simulation.breakage === "an effect does not wait") return Promise.resolve();
    return this.#database.flushed();
  }

  waitUntil(work: Promise<void>): void {
    this.backgrounds++;
    void work
      .catch((error: unknown) => this.#simulation.onThrown("background work", this, error))
      .finally(() => this.backgrounds--);
  }

  async deleteAll(): Promise<void> {
    this.refuseWhenReplaced();
    this.#database.wipe();
  }

  clock(): number {
    return this.#clock.now();
  }

  startClockAt(newestStored: number): void {
    this.#clock.startAt(newestStored);
  }

  isClockAhead(): boolean {
    return this.#clock.isAhead();
  }

  setTimer(ms: number, ring: () => void): () => void {
    const { breakage, random, schedule } = this.#simulation;
    if (breakage === "a timer is lost" && random.chance(0.05)) return () => {};
    this.timers++;
    this.#beat();
    let isOver = false;
    const finish = () => {
      if (!isOver) this.timers--;
      isOver = true;
    };
    const cancel = schedule.after(ms, `a timer of ${ms} ms rings`, () => {
      finish();
      this.deliver(ring);
    });
    return () => {
      finish();
      cancel();
    };
  }

  /** While timers are pending, the seconds are measured, as on one machine. */
  #beat(): void {
    if (this.#isBeating) return;
    this.#isBeating = true;
    const end = this.#clock.measure(beatMs);
    const onBeat = () => {
      this.#isBeating = false;
      end(true);
      this.#ringIfOverdue();
      if (this.timers > 0 && this.state !== "dead") this.#beat();
    };
    this.#simulation.schedule.after(beatMs, "a beat", onBeat, 0);
  }

  #ringIfOverdue(): void {
    const { weather } = this.#simulation;
    const { alarm, isRinging } = this.#database;
    if (!weather.isOneMachine || this.state !== "live" || isRinging) return;
    if (alarm !== undefined && this.clock() >= alarm + beatMs) this.onOverdue();
  }

  randomId(length: number): string {
    return this.#simulation.random.name(length);
  }

  log(line: Record<string, string | number | undefined>): void {
    if (line.failed !== undefined) this.#simulation.schedule.say(`failed: ${line.failed}`);
  }

  /** Delivers an event from outside. */
  deliver(work: () => void): void {
    if (this.state === "dead") return;
    try {
      work();
    } catch (error) {
      this.#simulation.onThrown("a callback", this, error);
    }
  }

  cut(how: "forgotten" | "dead"): void {
    this.state = how;
    if (how === "forgotten") return;
    for (const end of this.onCut) end();
    this.onCut.clear();
  }

  /** A replaced instance notices here. */
  protected refuseWhenReplaced(): void {
    if (this.state === "live") return;
    this.cut("dead");
    throw new InstanceReplaced("this instance has been replaced");
  }
}

export type Outcome<T> = { ok: T } | { refused: BerthError } | { lost: true };

type AnyActor = { alarm(): Promise<void> };
type Instance<Actor> = { host: BaseHost; actor: Actor };

export abstract class SimulatedObject<Actor extends AnyActor> {
  /** The calls that have not ended. */
  readonly open = new Set<{ what: string }>();
  readonly database: Database;
  readonly #simulation: Simulation;
  #instance: Instance<Actor> | undefined;
  #cancelAlarm = () => {};
  /** For which time of the wall clock the alarm is set. */
  #armedFor: number | undefined;

  constructor(simulation: Simulation, database: Database) {
    this.#simulation = simulation;
    this.database = database;
    database.onAlarm = () => this.#armed();
  }

  protected abstract createInstance(): Instance<Actor>;
  /** Called first in each request. */
  protected abstract wake(actor: Actor): void;

  get actor(): Actor | undefined {
    return this.#instance?.actor;
  }

  get host(): BaseHost | undefined {
    return this.#instance?.host;
  }

  /**
   * One request and its response; `lost` if the caller cannot know the outcome. `onResponse` gets what leaves the
   * object, even if it does not arrive.
   */
  call<T>(
    what: string,
    work: (actor: Actor, host: BaseHost) => T | Promise<T>,
    onResponse: (value: T) => void = () => {},
  ): Promise<Outcome<T>> {
    const { schedule } = this.#simulation;
    const open = { what };
    this.open.add(open);
    return new Promise((resolve) => {
      let isSettled = false;
      const settle = (outcome: Outcome<T>) => {
        if (isSettled) return;
        isSettled = true;
        schedule.after(this.#simulation.delay(), `answered: ${what}`, () => {
          this.open.delete(open);
          resolve(outcome);
        });
      };
      schedule.after(this.#simulation.delay(), what, () => {
        const { host, actor } = this.#current();
        host.onCut.add(() => settle({ lost: true }));
        void this.#run(host, () => {
          this.wake(actor);
          return work(actor, host);
        }).then((outcome) => {
          if (host.isMuted) return settle({ lost: true });
          if ("ok" in outcome) onResponse(outcome.ok);
          settle(this.#simulation.loses("answer to a client") ? { lost: true } : outcome);
        });
      });
    });
  }

  /** `forgotten`: the instance runs on next to its successor until it touches its rows. */
  crash(how: "forgotten" | "dead"): void {
    const host = this.#instance?.host;
    if (host === undefined) return;
    this.#instance = undefined;
    this.#simulation.count("fault", `crash: ${how}`);
    host.isMuted = this.database.isDirty;
    host.cut(how);
    this.database.loseUnflushed();
    if (how === "forgotten") {
      const { schedule, random } = this.#simulation;
      schedule.after(random.between(1, 40_000), "it is ended", () => host.cut("dead"));
    }
  }

  /** The platform evicts an instance without work. */
  sleep(): void {
    this.#instance?.host.cut("dead");
    this.#instance = undefined;
  }

  async #run<T>(host: BaseHost, work: () => T | Promise<T>): Promise<Outcome<T>> {
    let outcome: Outcome<T>;
    try {
      outcome = { ok: await work() };
    } catch (error) {
      if (error instanceof BerthError) outcome = { refused: error };
      else {
        this.#simulation.onThrown("a call", host, error);
        outcome = { lost: true };
      }
    }
    if (host.state === "live" && this.#simulation.breakage !== "an answer does not wait") {
      await this.database.flushed();
    }
    return outcome;
  }

  #current(): Instance<Actor> {
    if (this.#instance === undefined) {
      this.#instance = this.createInstance();
      this.#instance.host.onOverdue = () => void this.#ring();
    }
    return this.#instance;
  }

  /** Alarms may be late, and run one after the other. */
  #armed(): void {
    const { database } = this;
    const { schedule, weather } = this.#simulation;
    // One machine counts from the moment at which the alarm was set, also over an instance's end.
    if (weather.isOneMachine && this.#armedFor === database.alarmRingsAt) return;
    this.#cancelAlarm();
    this.#armedFor = undefined;
    if (database.alarmRingsAt === undefined || database.isRinging) return;
    const ms = database.alarmRingsAt - this.#simulation.clock() + this.#simulation.alarmDelay();
    this.#armedFor = database.alarmRingsAt;
    this.#cancelAlarm = schedule.after(ms, "the alarm rings", () => this.#alarmIsDue());
  }

  /** One machine holds an alarm back until the wall clock shows its time. */
  #alarmIsDue(): void {
    const { isOneMachine } = this.#simulation.weather;
    const isHeld = this.#simulation.clock() < (this.database.alarmRingsAt ?? 0);
    this.#armedFor = undefined;
    if (isOneMachine && isHeld) this.#armed();
    else void this.#ring();
  }

  async #ring(): Promise<void> {
    const { database } = this;
    const { host, actor } = this.#current();
    this.#cancelAlarm();
    this.#armedFor = undefined;
    database.clearAlarm();
    database.isRinging = true;
    this.#simulation.count("outcome", "an alarm rang");
    try {
      this.wake(actor);
      await actor.alarm();
    } catch (error) {
      if (!(error instanceof InstanceReplaced)) this.#simulation.onThrown("the alarm", host, error);
      return;
    }
    if (host.state === "live") database.onAlarmDone();
  }
}
