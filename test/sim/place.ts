/**
 * Owns the place in which one instance of the object lives: it can be cut off in the middle of anything, and then
 * nothing reaches it any more. A forgotten one runs on until it touches its rows, as the platform allows.
 */
import type { Container } from "../../src/container/container.ts";
import type { Host, SqlValue } from "../../src/objects/sandbox/host.ts";
import type { Report, ReportTaken } from "../../src/protocol/directory.ts";
import { containerOver } from "./wire.ts";
import type { World } from "./world.ts";

/** What a fresh instance learns the newest committed time from. */
const tellsTheTime = /FROM (sandbox|lease|metadata)$|^SELECT at FROM event/;

/** It is not the object's instance any more, and has just found out. */
export class Gone extends Error {
  override readonly name = "Gone";
}

export class Place implements Host {
  state: "live" | "forgotten" | "dead" = "live";
  timers = 0;
  backgrounds = 0;
  /** What ends with this instance. */
  readonly onCut = new Set<() => void>();
  readonly bornAt: number;
  readonly #world: World;

  constructor(world: World) {
    this.#world = world;
    this.bornAt = world.clock();
  }

  sql<Row extends Record<string, SqlValue>>(query: string, ...bindings: SqlValue[]): Row[] {
    this.#storage();
    const rows = this.#world.database.sql<Row>(query, ...bindings);
    if (this.#world.breakage !== "the clock runs backwards" || !tellsTheTime.test(query)) {
      return rows;
    }
    return rows.map((row) => ({ ...row, at: 0 }));
  }

  setAlarm(at: number | undefined): void {
    this.#storage();
    this.#world.database.setAlarm(at);
  }

  durable(): Promise<void> {
    this.#storage();
    if (this.#world.breakage === "an effect does not wait") return Promise.resolve();
    return this.#world.database.durable();
  }

  background(work: Promise<void>): void {
    this.backgrounds++;
    void work
      .catch((error: unknown) => this.#world.threw("background work", this, error))
      .finally(() => this.backgrounds--);
  }

  /** The Directory of these histories takes every report. What leaves an object waits for its rows to be on disk. */
  async tell(report: Report): Promise<ReportTaken> {
    this.#storage();
    await this.#world.database.durable();
    this.#world.observer.told(report);
    return { epoch: "simulated" };
  }

  async wipe(): Promise<void> {
    this.#storage();
    this.#world.database.wipe();
    this.#world.observer.wiped();
  }

  clock(): number {
    return this.#world.clock();
  }

  timer(ms: number, ring: () => void): () => void {
    if (this.#world.breakage === "a timer is lost" && this.#world.random.chance(0.05)) {
      return () => {};
    }
    this.timers++;
    let isOver = false;
    const over = () => {
      if (!isOver) this.timers--;
      isOver = true;
    };
    const cancel = this.#world.schedule.after(ms, `a timer of ${ms} ms rings`, () => {
      over();
      this.deliver(ring);
    });
    return () => {
      over();
      cancel();
    };
  }

  draw(length: number): string {
    return this.#world.random.name(length);
  }

  openContainer(): Container {
    return containerOver(this.#world, this);
  }

  log(line: Record<string, string | number | undefined>): void {
    if (line.failed !== undefined) this.#world.schedule.say(`failed: ${line.failed}`);
  }

  /** Whatever comes from outside. */
  deliver(work: () => void): void {
    if (this.state === "dead") return;
    try {
      work();
    } catch (error) {
      this.#world.threw("a callback", this, error);
    }
  }

  cut(how: "forgotten" | "dead"): void {
    this.state = how;
    if (how === "forgotten") return;
    for (const end of this.onCut) end();
    this.onCut.clear();
  }

  #storage(): void {
    if (this.state === "live") return;
    this.cut("dead");
    throw new Gone("this instance has been replaced");
  }
}
