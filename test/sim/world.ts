/**
 * Owns one run's parts and what all of them share: time, chance, delays, what is wrong at the moment, the verdict.
 * Does not own what is checked (observer.ts), nor what happens in the run (plan.ts).
 */
import type { Report } from "../../src/protocol/directory.ts";
import { type BasePlace, Gone } from "./base-host.ts";
import type { Breakage } from "./breakages.ts";
import { Database } from "./database.ts";
import { SimEngine } from "./engine.ts";
import { SimObject } from "./object.ts";
import { Observer } from "./observer.ts";
import { Random } from "./random.ts";
import { Schedule } from "./schedule.ts";

export type Violation = { rule: string; message: string };

export type CountKind = "state" | "lease" | "fault" | "answer" | "outcome";

/** What is wrong now; the plan switches it on and off. */
export class Weather {
  lossShare = 0;
  isSlow = false;
  hasLateBodies = false;
  hasLateAlarms = false;
  /** Questions between objects come twice, the second time late. */
  repeats = false;
  skewMs = 0;
  /** By how much clocks were set back, all together. */
  setBackMs = 0;
}

/** What several sandboxes of one history have in common. */
export type Shared = {
  random: Random;
  schedule: Schedule;
  weather: Weather;
  counts: Map<string, number>;
  tell: (report: Report, from: BasePlace) => Promise<void>;
};

export const began = Date.UTC(2030, 0, 1);

export class World {
  readonly random: Random;
  readonly schedule: Schedule;
  readonly database: Database;
  readonly engine: SimEngine;
  readonly object: SimObject;
  readonly observer: Observer;
  readonly breakage: Breakage | undefined;
  readonly weather: Weather;
  readonly counts: Map<string, number>;
  /** The Directory of a history with one sandbox takes every report. */
  readonly tell: Shared["tell"];
  violation: Violation | undefined;
  /** Commands that have begun. */
  runs = 0;
  #engineBusyUntil = 0;
  #commitsUntilCrash = 0;

  constructor(seed: number, breakage: Breakage | undefined, shared?: Shared) {
    this.random = shared?.random ?? new Random(seed);
    this.breakage = breakage;
    this.schedule = shared?.schedule ?? new Schedule(this.random, began);
    this.weather = shared?.weather ?? new Weather();
    this.counts = shared?.counts ?? new Map();
    this.tell = shared?.tell ?? (async () => {});
    this.database = new Database(this.schedule, this.random, breakage);
    this.engine = new SimEngine(this);
    this.observer = new Observer(this);
    this.object = new SimObject(this);
  }

  /** The object's clock: it may be set, forwards and back. */
  clock(): number {
    return this.schedule.now + this.weather.skewMs;
  }

  setClock(byMs: number): void {
    this.weather.skewMs += byMs;
    this.weather.setBackMs += Math.max(0, -byMs);
    this.database.onAlarm();
  }

  /** Of the crashes that the plan wants, the kind that cuts between a commit and what follows it. */
  crashAfterCommits(count: number): void {
    this.#commitsUntilCrash = count;
  }

  onCommit(): void {
    if (this.#commitsUntilCrash === 0 || --this.#commitsUntilCrash > 0) return;
    this.count("fault", "crash after a commit has come");
    this.schedule.after(this.random.between(0, 2), "crash after the commit", () =>
      this.object.crash("dead"),
    );
  }

  sleep(ms: number, what: string): Promise<void> {
    return new Promise((resolve) => this.schedule.after(ms, what, resolve));
  }

  delay(): number {
    if (this.weather.isSlow && this.random.chance(0.3)) return this.random.between(100, 20_000);
    return this.random.chance(0.02) ? this.random.between(10, 3_000) : this.random.between(0, 4);
  }

  bodyDelay(): number {
    return this.weather.hasLateBodies && this.random.chance(0.5)
      ? this.random.between(1, 10_000)
      : 0;
  }

  alarmDelay(): number {
    return this.weather.hasLateAlarms && this.random.chance(0.5)
      ? this.random.between(1, 60_000)
      : this.random.between(0, 5);
  }

  loses(what: string): boolean {
    if (this.weather.lossShare === 0 || !this.random.chance(this.weather.lossShare)) return false;
    this.count("fault", `lost: ${what}`);
    this.schedule.say(`lost: ${what}`);
    return true;
  }

  /** Verbs of the engine arrive in the order in which they were sent. */
  engineTurn(what: string, work: () => void): void {
    const soonest = this.schedule.now + this.delay();
    this.#engineBusyUntil = Math.max(this.#engineBusyUntil + 1, soonest);
    this.schedule.after(this.#engineBusyUntil - this.schedule.now, what, work);
  }

  count(kind: CountKind, name: string): void {
    const key = `${kind}: ${name}`;
    this.counts.set(key, (this.counts.get(key) ?? 0) + 1);
  }

  fail(rule: string, message: string): void {
    this.violation ??= { rule, message };
    this.schedule.say(`BROKEN: ${rule}: ${message}`);
  }

  /** Nothing of the object may throw but an instance that has been replaced. */
  threw(what: string, place: BasePlace, error: unknown): void {
    if (error instanceof Gone || place.state !== "live") return;
    const told = error instanceof Error ? (error.stack ?? error.message) : String(error);
    this.fail("nothing throws", `${what} threw ${told}`);
  }
}
