/**
 * The parts of one run and what they share: time, randomness, delays, current faults and the verdict. See observer.ts
 * for the checks, and plan.ts for what happens.
 */
import type { Report } from "../../src/protocol/directory.ts";
import { type BaseHost, InstanceReplaced } from "./base-host.ts";
import type { Breakage } from "./breakages.ts";
import { Database } from "./database.ts";
import { SimEngine } from "./engine.ts";
import { Observer } from "./observer.ts";
import { Random } from "./random.ts";
import { Schedule } from "./schedule.ts";
import { SimSandbox } from "./sim-sandbox.ts";

export type Violation = { rule: string; message: string };

export type CountKind = "state" | "lease" | "fault" | "answer" | "outcome";

/** The current faults; the plan switches them. */
export class Weather {
  lossShare = 0;
  isSlow = false;
  hasLateBodies = false;
  hasLateAlarms = false;
  /** Requests between objects arrive twice, the second time late. */
  repeats = false;
  skewMs = 0;
  /** By how much clocks were set back in total. */
  setBackMs = 0;
}

/** What several sandboxes of one history share. */
export type SharedWorld = {
  random: Random;
  schedule: Schedule;
  weather: Weather;
  counts: Map<string, number>;
  sendReport: (report: Report, from: BaseHost) => Promise<void>;
};

export const simulationStart = Date.UTC(2030, 0, 1);

export class World {
  readonly random: Random;
  readonly schedule: Schedule;
  readonly database: Database;
  readonly engine: SimEngine;
  readonly object: SimSandbox;
  readonly observer: Observer;
  readonly breakage: Breakage | undefined;
  readonly weather: Weather;
  readonly counts: Map<string, number>;
  /** In a history with one sandbox, a Directory that accepts every report. */
  readonly sendReport: SharedWorld["sendReport"];
  violation: Violation | undefined;
  /** The number of commands that have started. */
  runs = 0;
  #engineBusyUntil = 0;
  #commitsUntilCrash = 0;

  constructor(seed: number, breakage: Breakage | undefined, shared?: SharedWorld) {
    this.random = shared?.random ?? new Random(seed);
    this.breakage = breakage;
    this.schedule = shared?.schedule ?? new Schedule(this.random, simulationStart);
    this.weather = shared?.weather ?? new Weather();
    this.counts = shared?.counts ?? new Map();
    this.sendReport = shared?.sendReport ?? (async () => {});
    this.database = new Database(this.schedule, this.random, breakage);
    this.engine = new SimEngine(this);
    this.observer = new Observer(this);
    this.object = new SimSandbox(this);
  }

  /** The object's clock, which may be set forward and back. */
  clock(): number {
    return this.schedule.now + this.weather.skewMs;
  }

  setClock(byMs: number): void {
    this.weather.skewMs += byMs;
    this.weather.setBackMs += Math.max(0, -byMs);
    this.database.onAlarm();
  }

  /** Crashes the object up to 2 ms after that many commits. */
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

  /** Engine verbs arrive in the order in which they were sent. */
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

  /** Reports a thrown error, unless the instance has been replaced. */
  onThrown(what: string, host: BaseHost, error: unknown): void {
    if (error instanceof InstanceReplaced || host.state !== "live") return;
    const message = error instanceof Error ? (error.stack ?? error.message) : String(error);
    this.fail("nothing throws", `${what} threw ${message}`);
  }
}
