/**
 * An object as its callers see it: it has one instance at a time, created on demand and lost when the history says
 * so.
 */
import { BerthError } from "../../src/protocol/errors.ts";
import { type BaseHost, InstanceReplaced } from "./base-host.ts";
import type { Breakage } from "./breakages.ts";
import type { Database } from "./database.ts";
import type { Random } from "./random.ts";
import type { Schedule } from "./schedule.ts";

/** What an object needs: its rows, and what it shares with the other objects of its history. */
export interface InstanceDeps {
  readonly random: Random;
  readonly schedule: Schedule;
  readonly database: Database;
  readonly breakage: Breakage | undefined;
  clock(): number;
  delay(): number;
  alarmDelay(): number;
  loses(what: string): boolean;
  count(kind: "fault" | "outcome", name: string): void;
  onThrown(what: string, host: BaseHost, error: unknown): void;
}

export type Outcome<T> = { ok: T } | { refused: BerthError } | { lost: true };

type OpenCall = { what: string; since: number };

export abstract class SimulatedObject<Instance extends { host: BaseHost }> {
  readonly open = new Set<OpenCall>();
  readonly #ground: InstanceDeps;
  #instance: Instance | undefined;
  #cancelAlarm = () => {};

  constructor(ground: InstanceDeps) {
    this.#ground = ground;
    ground.database.onAlarm = () => this.#armed();
  }

  protected abstract createInstance(): Instance;
  /** Called first in each request. */
  protected abstract wake(instance: Instance): void;
  protected abstract ring(instance: Instance): Promise<void>;

  get instance(): Instance | undefined {
    return this.#instance;
  }

  set hasSlowDisk(isSlow: boolean) {
    this.#ground.database.isSlow = isSlow;
  }

  get host(): Instance["host"] | undefined {
    return this.#instance?.host;
  }

  /**
   * One request and its response; `lost` if the caller cannot know the outcome. `onResponse` gets what leaves the
   * object, even if it does not arrive.
   */
  request<T>(
    what: string,
    work: (instance: Instance) => T | Promise<T>,
    onResponse: (value: T) => void = () => {},
  ): Promise<Outcome<T>> {
    const { schedule } = this.#ground;
    const open: OpenCall = { what, since: schedule.now };
    this.open.add(open);
    return new Promise((resolve) => {
      let isSettled = false;
      const settle = (outcome: Outcome<T>) => {
        if (isSettled) return;
        isSettled = true;
        schedule.after(this.#ground.delay(), `answered: ${what}`, () => {
          this.open.delete(open);
          resolve(outcome);
        });
      };
      schedule.after(this.#ground.delay(), what, () => {
        const instance = this.#current();
        instance.host.onCut.add(() => settle({ lost: true }));
        void this.#run(instance, () => {
          this.wake(instance);
          return work(instance);
        }).then((outcome) => {
          if (instance.host.isMuted) return settle({ lost: true });
          if ("ok" in outcome) onResponse(outcome.ok);
          settle(this.#ground.loses("answer to a client") ? { lost: true } : outcome);
        });
      });
    });
  }

  /** `forgotten`: the instance runs on next to its successor until it touches its rows. */
  crash(how: "forgotten" | "dead"): void {
    const host = this.#instance?.host;
    if (host === undefined) return;
    this.#instance = undefined;
    this.#ground.count("fault", `crash: ${how}`);
    host.isMuted = this.#ground.database.isDirty;
    host.cut(how);
    this.#ground.database.loseUnflushed();
    if (how === "forgotten") {
      const { schedule, random } = this.#ground;
      schedule.after(random.between(1, 40_000), "it is ended", () => host.cut("dead"));
    }
  }

  async #run<T>(instance: Instance, work: () => T | Promise<T>): Promise<Outcome<T>> {
    const { host } = instance;
    let outcome: Outcome<T>;
    try {
      outcome = { ok: await work() };
    } catch (error) {
      if (error instanceof BerthError) outcome = { refused: error };
      else {
        this.#ground.onThrown("a call", host, error);
        outcome = { lost: true };
      }
    }
    if (host.state === "live" && this.#ground.breakage !== "an answer does not wait") {
      await this.#ground.database.flushed();
    }
    return outcome;
  }

  #current(): Instance {
    this.#instance ??= this.createInstance();
    return this.#instance;
  }

  /** Alarms may be late, and run one after the other. */
  #armed(): void {
    this.#cancelAlarm();
    const { database, schedule } = this.#ground;
    if (database.alarm === undefined || database.isRinging) return;
    const ms = database.alarm - this.#ground.clock() + this.#ground.alarmDelay();
    this.#cancelAlarm = schedule.after(ms, "the alarm rings", () => void this.#ring());
  }

  async #ring(): Promise<void> {
    const { database } = this.#ground;
    const instance = this.#current();
    const { host } = instance;
    database.alarm = undefined;
    database.isRinging = true;
    this.#ground.count("outcome", "an alarm rang");
    try {
      this.wake(instance);
      await this.ring(instance);
    } catch (error) {
      if (!(error instanceof InstanceReplaced)) this.#ground.onThrown("the alarm", host, error);
      return;
    }
    if (host.state === "live") database.onAlarmDone();
  }
}
