/**
 * What the Directory and the plans of a fleet history need from the simulation. Sandboxes use their world (world.ts).
 */
import type { BaseHost } from "../base-host.ts";
import { InstanceReplaced } from "../base-host.ts";
import type { Breakage } from "../breakages.ts";
import { Database } from "../database.ts";
import type { Random } from "../random.ts";
import type { Schedule } from "../schedule.ts";
import type { InstanceDeps } from "../simulated-object.ts";
import type { Fleet } from "./fleet.ts";

export class FleetDeps implements InstanceDeps {
  readonly random: Random;
  readonly schedule: Schedule;
  readonly database: Database;
  readonly breakage: Breakage | undefined;
  readonly #fleet: Fleet;

  constructor(fleet: Fleet, breakage?: Breakage) {
    this.#fleet = fleet;
    this.random = fleet.random;
    this.schedule = fleet.schedule;
    this.breakage = breakage;
    this.database = new Database(fleet.schedule, fleet.random, breakage);
  }

  clock(): number {
    return this.schedule.now;
  }

  delay(): number {
    const { isSlow } = this.#fleet.weather;
    if (isSlow && this.random.chance(0.3)) return this.random.between(100, 12_000);
    return this.random.chance(0.02) ? this.random.between(10, 2_000) : this.random.between(0, 4);
  }

  alarmDelay(): number {
    return this.#fleet.weather.hasLateAlarms && this.random.chance(0.5)
      ? this.random.between(1, 60_000)
      : this.random.between(0, 5);
  }

  loses(what: string): boolean {
    const { lossShare } = this.#fleet.weather;
    if (lossShare === 0 || !this.random.chance(lossShare)) return false;
    this.count("fault", `lost: ${what}`);
    this.schedule.say(`lost: ${what}`);
    return true;
  }

  count(kind: "fault" | "outcome", name: string): void {
    this.#fleet.count(kind, name);
  }

  onThrown(what: string, host: BaseHost, error: unknown): void {
    if (error instanceof InstanceReplaced || host.state !== "live") return;
    const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
    this.#fleet.fail("nothing throws", `${what} threw ${text}`);
  }
}
