/**
 * The objects of a fleet history on one schedule: a Directory, plans, and the sandboxes that they create. See script.ts for
 * what happens, and watch.ts and rest.ts for the checks.
 */
import type { Report } from "../../../src/protocol/directory.ts";
import { Random } from "../random.ts";
import { Schedule } from "../schedule.ts";
import {
  type CountKind,
  type SharedWorld,
  simulationStart,
  type Violation,
  Weather,
  World,
} from "../world.ts";
import { SimulatedDirectory } from "./directory-instance.ts";
import type { FleetBreakage } from "./fleet-breakages.ts";
import { SimulatedPlan } from "./plan-instance.ts";
import { callObject } from "./rpc.ts";
import { Watch } from "./watch.ts";

export const tenant = "sim";

export class Fleet {
  readonly random: Random;
  readonly schedule: Schedule;
  readonly weather = new Weather();
  readonly counts = new Map<string, number>();
  readonly sandboxes = new Map<string, World>();
  readonly directory: SimulatedDirectory;
  readonly watch: Watch;
  readonly breakage: FleetBreakage | undefined;
  violation: Violation | undefined;
  readonly #plans = new Map<string, SimulatedPlan>();
  #ids = 0;

  constructor(seed: number, breakage?: FleetBreakage) {
    this.random = new Random(seed);
    this.schedule = new Schedule(this.random, simulationStart);
    this.breakage = breakage;
    this.watch = new Watch(this);
    this.directory = new SimulatedDirectory(this);
  }

  /** A new id for each call that may create a sandbox, as the Worker generates it. */
  newId(): string {
    return `s${String(this.#ids++).padStart(3, "0")}`.padEnd(24, "x");
  }

  /** The sandbox's object, which exists once it was addressed. */
  sandbox(id: string): World {
    const known = this.sandboxes.get(id);
    if (known !== undefined) return known;
    const shared: SharedWorld = {
      random: this.random,
      schedule: this.schedule,
      weather: this.weather,
      counts: this.counts,
      sendReport: (report, from) =>
        callObject(this, from, this.directory, "a report", (it) =>
          it.applyReport(this.#ordered(report)),
        ),
    };
    const world = new World(0, undefined, shared);
    this.sandboxes.set(id, world);
    return world;
  }

  /** Breaks the order of reports if the history is to do so. */
  #ordered(report: Report): Report {
    if (this.breakage !== "reports have no order") return report;
    return { ...report, revision: this.schedule.steps };
  }

  plan(name: string): SimulatedPlan {
    const known = this.#plans.get(name);
    if (known !== undefined) return known;
    const made = new SimulatedPlan(this, name);
    this.#plans.set(name, made);
    return made;
  }

  get plans(): SimulatedPlan[] {
    return [...this.#plans.values()];
  }

  sleep(ms: number, what: string): Promise<void> {
    return new Promise((resolve) => this.schedule.after(ms, what, resolve));
  }

  count(kind: CountKind, name: string): void {
    const key = `${kind}: ${name}`;
    this.counts.set(key, (this.counts.get(key) ?? 0) + 1);
  }

  fail(rule: string, message: string): void {
    this.violation ??= { rule, message };
    this.schedule.say(`BROKEN: ${rule}: ${message}`);
  }

  stepped(): void {
    for (const [id, world] of this.sandboxes) {
      world.observer.onStep();
      if (world.violation === undefined) continue;
      this.fail(world.violation.rule, `${id.slice(0, 4)}: ${world.violation.message}`);
    }
  }

  close(): void {
    for (const world of this.sandboxes.values()) world.database.close();
    for (const plan of this.#plans.values()) plan.ground.database.close();
    this.directory.ground.database.close();
  }
}
