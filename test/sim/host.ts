/**
 * Owns what a sandbox's instance needs of its place beyond what every object needs: its container, its Directory.
 */

import type { Host, SqlValue } from "../../src/objects/sandbox/host.ts";
import type { Report } from "../../src/protocol/directory.ts";
import type { Container } from "../../src/runtime/runtime.ts";
import { BasePlace } from "./base-host.ts";
import { containerOver } from "./wire.ts";
import type { World } from "./world.ts";

export { Gone } from "./base-host.ts";

/** What a fresh instance learns the newest committed time from. */
const tellsTheTime = /FROM (sandbox|lease|metadata)$|^SELECT at FROM event/;

export class Place extends BasePlace implements Host {
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
    if (this.#world.breakage !== "the clock runs backwards" || !tellsTheTime.test(query)) {
      return rows;
    }
    return rows.map((row) => ({ ...row, at: 0 }));
  }

  /** What leaves an object waits for its rows to be on disk. */
  async tell(report: Report): Promise<void> {
    this.touchRows();
    await this.#world.database.durable();
    this.#world.observer.told(report);
    return this.#world.tell(report, this);
  }

  override async wipe(): Promise<void> {
    await super.wipe();
    this.#world.observer.wiped();
  }

  openContainer(): Container {
    return containerOver(this.#world, this);
  }
}
