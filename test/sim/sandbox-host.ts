/**
 * The host of a sandbox's instance: adds its container and its Directory.
 */

import type { Host, SqlValue } from "../../src/objects/sandbox/host.ts";
import type { Report } from "../../src/protocol/directory.ts";
import type { ContainerRuntime } from "../../src/runtime/runtime.ts";
import { BaseHost } from "./base-host.ts";
import { runtimeOver } from "./wire.ts";
import type { World } from "./world.ts";

export { InstanceReplaced } from "./base-host.ts";

/** The queries from which a fresh instance learns the newest committed time. */
const readsClock = /FROM (sandbox|lease|metadata)$|^SELECT at FROM event/;

export class SandboxHost extends BaseHost implements Host {
  readonly #world: World;

  constructor(world: World) {
    super(world);
    this.#world = world;
  }

  override sql<Row extends Record<string, SqlValue>>(
    query: string,
    ...bindings: SqlValue[]
  ): Row[] {
    const rows = super.sql<Row>(query, ...bindings);
    if (this.#world.breakage !== "the clock runs backwards" || !readsClock.test(query)) {
      return rows;
    }
    return rows.map((row) => ({ ...row, at: 0 }));
  }

  /** A report leaves the object after its rows are on disk. */
  async sendReport(report: Report): Promise<void> {
    this.refuseWhenReplaced();
    await this.#world.database.flushed();
    this.#world.observer.recordReport(report);
    return this.#world.sendReport(report, this);
  }

  override async deleteAll(): Promise<void> {
    await super.deleteAll();
    this.#world.observer.onWiped();
  }

  openRuntime(): ContainerRuntime {
    return runtimeOver(this.#world, this);
  }
}
