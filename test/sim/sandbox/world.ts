/**
 * A history of one sandbox, or the part of one sandbox in a fleet: its rows, its engine, its object and the checks. See
 * script.ts for what happens.
 */
import type { Report } from "../../../src/protocol/directory.ts";
import { Database } from "../database.ts";
import type { BaseHost } from "../simulated-object.ts";
import { Simulation } from "../simulation.ts";
import type { Breakage } from "./breakages.ts";
import { SimEngine } from "./engine.ts";
import { Observer } from "./observer.ts";
import { SimPlatform } from "./platform.ts";
import { SimSandbox } from "./sandbox.ts";

type WorldOptions = {
  breakage?: Breakage | undefined;
  /** The history of which this one is a part. */
  fleet?: Simulation;
  /** Containers are the platform's. */
  platform?: boolean;
};

export class World extends Simulation {
  readonly database: Database;
  readonly engine: SimEngine | SimPlatform;
  readonly object: SimSandbox;
  readonly observer: Observer;
  /** The number of commands that have started. */
  runs = 0;
  #engineBusyUntil = 0;
  #commitsUntilCrash = 0;

  constructor(seed: number, { breakage, fleet, platform = false }: WorldOptions = {}) {
    super(seed, breakage, fleet);
    this.database = new Database(this);
    this.engine = platform ? new SimPlatform(this) : new SimEngine(this);
    this.observer = new Observer(this);
    this.object = new SimSandbox(this);
  }

  /** Alone, a sandbox has a Directory that accepts every report. */
  sendReport: (report: Report, from: BaseHost) => Promise<void> = async () => {};

  override onStep(): void {
    this.observer.onStep();
    if (this.engine instanceof SimPlatform) this.engine.onStep();
  }

  setClock(byMs: number): void {
    this.weather.skewMs += byMs;
    this.weather.setBackMs += Math.max(0, -byMs);
    if (!this.weather.isOneMachine) this.database.onAlarm();
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

  bodyDelay(): number {
    return this.weather.hasLateBodies && this.random.chance(0.5)
      ? this.random.between(1, 10_000)
      : 0;
  }

  /** Engine verbs arrive in the order in which they were sent. */
  engineTurn(what: string, work: () => void): void {
    const soonest = this.schedule.now + this.delay();
    this.#engineBusyUntil = Math.max(this.#engineBusyUntil + 1, soonest);
    this.schedule.after(this.#engineBusyUntil - this.schedule.now, what, work);
  }
}
