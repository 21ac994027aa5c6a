/**
 * The host of one instance of an object. It can be cut off at any moment; a forgotten instance runs on until it
 * touches its rows, as the platform allows. See sandbox-host.ts for what a sandbox needs in addition.
 */
import type { ObjectHost as AnyPlace, SqlValue } from "../../src/objects/shared/host.ts";
import type { InstanceDeps } from "./simulated-object.ts";

/** The instance was replaced, and has just noticed. */
export class InstanceReplaced extends Error {
  override readonly name = "Gone";
}

export class BaseHost implements AnyPlace {
  state: "live" | "forgotten" | "dead" = "live";
  /** Its last writes were lost with it: nothing that it sends leaves any more. */
  isMuted = false;
  timers = 0;
  backgrounds = 0;
  /** Called when this instance is cut off. */
  readonly onCut = new Set<() => void>();
  readonly createdAt: number;
  readonly #ground: InstanceDeps;

  constructor(ground: InstanceDeps) {
    this.#ground = ground;
    this.createdAt = ground.clock();
  }

  sql<Row extends Record<string, SqlValue>>(query: string, ...bindings: SqlValue[]): Row[] {
    this.refuseWhenReplaced();
    return this.#ground.database.sql<Row>(query, ...bindings);
  }

  transaction<T>(work: () => T): T {
    this.refuseWhenReplaced();
    return this.#ground.database.transaction(work);
  }

  setAlarm(time: number | undefined): void {
    this.refuseWhenReplaced();
    this.#ground.database.setAlarm(time);
  }

  flush(): Promise<void> {
    this.refuseWhenReplaced();
    if (this.#ground.breakage === "an effect does not wait") return Promise.resolve();
    return this.#ground.database.flushed();
  }

  waitUntil(work: Promise<void>): void {
    this.backgrounds++;
    void work
      .catch((error: unknown) => this.#ground.onThrown("background work", this, error))
      .finally(() => this.backgrounds--);
  }

  async deleteAll(): Promise<void> {
    this.refuseWhenReplaced();
    this.#ground.database.wipe();
  }

  clock(): number {
    return this.#ground.clock();
  }

  setTimer(ms: number, ring: () => void): () => void {
    const { breakage, random, schedule } = this.#ground;
    if (breakage === "a timer is lost" && random.chance(0.05)) return () => {};
    this.timers++;
    let isOver = false;
    const finish = () => {
      if (!isOver) this.timers--;
      isOver = true;
    };
    const cancel = schedule.after(ms, `a timer of ${ms} ms rings`, () => {
      finish();
      this.deliver(ring);
    });
    return () => {
      finish();
      cancel();
    };
  }

  randomId(length: number): string {
    return this.#ground.random.name(length);
  }

  log(line: Record<string, string | number | undefined>): void {
    if (line.failed !== undefined) this.#ground.schedule.say(`failed: ${line.failed}`);
  }

  /** Delivers an event from outside. */
  deliver(work: () => void): void {
    if (this.state === "dead") return;
    try {
      work();
    } catch (error) {
      this.#ground.onThrown("a callback", this, error);
    }
  }

  cut(how: "forgotten" | "dead"): void {
    this.state = how;
    if (how === "forgotten") return;
    for (const end of this.onCut) end();
    this.onCut.clear();
  }

  /** A replaced instance notices here. */
  protected refuseWhenReplaced(): void {
    if (this.state === "live") return;
    this.cut("dead");
    throw new InstanceReplaced("this instance has been replaced");
  }
}
