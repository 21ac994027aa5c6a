/**
 * The objects of a fleet history on one schedule: a Directory, plans, and the sandboxes that they create. See script.ts for
 * what happens, and watch.ts and rest.ts for the checks.
 */
import type { Report } from "../../../src/protocol/directory.ts";
import { World } from "../sandbox/world.ts";
import { Simulation } from "../simulation.ts";
import { SimulatedDirectory } from "./directory-instance.ts";
import type { FleetBreakage } from "./fleet-breakages.ts";
import { SimulatedPlan } from "./plan.ts";
import { callObject } from "./rpc.ts";
import { Watch } from "./watch.ts";

export const tenant = "sim";

export class Fleet extends Simulation {
  readonly sandboxes = new Map<string, World>();
  readonly directory: SimulatedDirectory;
  readonly watch: Watch;
  protected override readonly slowDelayMaxMs = 12_000;
  protected override readonly rareDelayMaxMs = 2_000;
  protected override readonly stepsMax = 120_000;
  readonly #plans = new Map<string, SimulatedPlan>();
  #ids = 0;

  constructor(seed: number, breakage?: FleetBreakage) {
    super(seed, breakage);
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
    const world = new World(0, { fleet: this });
    world.sendReport = (report, from) =>
      callObject(this, from, this.directory, "a report", (directory) =>
        directory.applyReport(this.#ordered(report)),
      );
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

  /** All objects of the history. */
  get objects() {
    const sandboxes = [...this.sandboxes.values()].map(({ object }) => object);
    return [this.directory, ...this.plans, ...sandboxes];
  }

  get plans(): SimulatedPlan[] {
    return [...this.#plans.values()];
  }

  protected override onStep(): void {
    for (const [id, world] of this.sandboxes) {
      world.onStep();
      if (world.violation === undefined) continue;
      this.fail(world.violation.rule, `${id.slice(0, 4)}: ${world.violation.message}`);
    }
  }

  close(): void {
    for (const world of this.sandboxes.values()) world.database.close();
    for (const plan of this.#plans.values()) plan.database.close();
    this.directory.database.close();
  }
}
