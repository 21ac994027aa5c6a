/**
 * Owns the place in which one instance of an object lives: it can be cut off in the middle of anything, and then
 * nothing reaches it any more. A forgotten one runs on until it touches its rows, as the platform allows.
 * Does not own what a sandbox needs beyond that (place.ts).
 */
import type { Place as AnyPlace, SqlValue } from "../../src/objects/shared/host.ts";
import type { Ground } from "./instance.ts";

/** It is not the object's instance any more, and has just found out. */
export class Gone extends Error {
  override readonly name = "Gone";
}

export class BasePlace implements AnyPlace {
  state: "live" | "forgotten" | "dead" = "live";
  /** What it had written last was lost with it: nothing that it says comes out any more. */
  isMuted = false;
  timers = 0;
  backgrounds = 0;
  /** What ends with this instance. */
  readonly onCut = new Set<() => void>();
  readonly bornAt: number;
  readonly #ground: Ground;

  constructor(ground: Ground) {
    this.#ground = ground;
    this.bornAt = ground.clock();
  }

  sql<Row extends Record<string, SqlValue>>(query: string, ...bindings: SqlValue[]): Row[] {
    this.touchRows();
    return this.#ground.database.sql<Row>(query, ...bindings);
  }

  together<T>(work: () => T): T {
    this.touchRows();
    return this.#ground.database.together(work);
  }

  setAlarm(at: number | undefined): void {
    this.touchRows();
    this.#ground.database.setAlarm(at);
  }

  durable(): Promise<void> {
    this.touchRows();
    if (this.#ground.breakage === "an effect does not wait") return Promise.resolve();
    return this.#ground.database.durable();
  }

  background(work: Promise<void>): void {
    this.backgrounds++;
    void work
      .catch((error: unknown) => this.#ground.threw("background work", this, error))
      .finally(() => this.backgrounds--);
  }

  async wipe(): Promise<void> {
    this.touchRows();
    this.#ground.database.wipe();
  }

  clock(): number {
    return this.#ground.clock();
  }

  timer(ms: number, ring: () => void): () => void {
    const { breakage, random, schedule } = this.#ground;
    if (breakage === "a timer is lost" && random.chance(0.05)) return () => {};
    this.timers++;
    let isOver = false;
    const over = () => {
      if (!isOver) this.timers--;
      isOver = true;
    };
    const cancel = schedule.after(ms, `a timer of ${ms} ms rings`, () => {
      over();
      this.deliver(ring);
    });
    return () => {
      over();
      cancel();
    };
  }

  draw(length: number): string {
    return this.#ground.random.name(length);
  }

  log(line: Record<string, string | number | undefined>): void {
    if (line.failed !== undefined) this.#ground.schedule.say(`failed: ${line.failed}`);
  }

  /** Whatever comes from outside. */
  deliver(work: () => void): void {
    if (this.state === "dead") return;
    try {
      work();
    } catch (error) {
      this.#ground.threw("a callback", this, error);
    }
  }

  cut(how: "forgotten" | "dead"): void {
    this.state = how;
    if (how === "forgotten") return;
    for (const end of this.onCut) end();
    this.onCut.clear();
  }

  /** An instance that was replaced finds out here. */
  protected touchRows(): void {
    if (this.state === "live") return;
    this.cut("dead");
    throw new Gone("this instance has been replaced");
  }
}
