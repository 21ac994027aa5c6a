/**
 * Owns a whole Berth in one Node process: the real entry, objects and core, over rows in memory and containers in
 * memory. It knows no sockets. Its objects can be evicted, its alarms rung, its clock set.
 */
import { DatabaseSync } from "node:sqlite";
import type { Env } from "../../src/config.ts";
import { DirectoryObject } from "../../src/objects/directory/object.ts";
import { PlanObject } from "../../src/objects/plan/object.ts";
import { SandboxObject } from "../../src/objects/sandbox/object.ts";
import type { BerthApi } from "../../src/protocol/api.ts";
import type { Right } from "../../src/protocol/rights.ts";
import type { Container } from "../../src/runtime/runtime.ts";
import { BerthEntry } from "../../src/worker/rpc.ts";
import { contractSizes } from "../contract/sizes.ts";
import { FakeMachine, fakeContainer } from "./container.ts";
import { together } from "./together.ts";

type Place = {
  rows: DatabaseSync;
  alarm: number | undefined;
  object: SandboxObject | undefined;
  directory: DirectoryObject | undefined;
  plan: PlanObject | undefined;
  machine: FakeMachine;
  /** Work that the object goes on with after it has answered. */
  background: Set<Promise<unknown>>;
  /** Of the instance that there is now. */
  life: { isCut: boolean };
};

/** One row. */
export type Stored = Record<string, string | number | null>;

type Caller = "Door" | "Directory" | "Sandbox" | "Plan";
export type Calling = { from: Caller; to: Caller; verb: string };
type Around = <T>(call: Calling, work: () => T) => T;

/** It ends only with all of its bytes. */
class FixedLengthStream extends TransformStream<Uint8Array, Uint8Array> {
  constructor(length: number) {
    let left = length;
    super({
      transform(chunk, controller) {
        left -= chunk.length;
        if (left < 0) throw new TypeError("more bytes came than were said");
        controller.enqueue(chunk);
      },
      flush() {
        if (left > 0) throw new TypeError("fewer bytes came than were said");
      },
    });
  }
}

// What the platform has and Node does not. The first is never used without sockets.
Object.assign(globalThis, {
  WebSocketRequestResponsePair: class {},
  IdentityTransformStream: TransformStream,
  FixedLengthStream,
});

export class FakeBerth {
  readonly #places = new Map<string, Place>();
  readonly #around: Around;

  /** `around`: each call from one to another goes through it. */
  constructor(around: Around = (_call, work) => work()) {
    this.#around = around;
  }

  /** As a binding with these props sees it. */
  bind(props: { tenant?: string; rights?: readonly Right[] }): BerthApi {
    return new BerthEntry({ props } as never, this.#envOf("Door"));
  }

  /** As other objects reach it. */
  object(id: string): SandboxObject {
    return this.#object(id);
  }

  machine(id: string): FakeMachine {
    return this.#place(id).machine;
  }

  alarm(id: string): number | undefined {
    return this.#place(id).alarm;
  }

  /** Straight to its rows. */
  rows(id: string, query: string, ...bindings: (string | number | null)[]): void {
    this.#place(id)
      .rows.prepare(query)
      .run(...bindings);
  }

  /** All that is stored there, by table. */
  dump(id: string): Map<string, Stored[]> {
    const ask = <T>(query: string) => this.#place(id).rows.prepare(query).all() as T[];
    const tables = ask<{ name: string }>(
      "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'",
    );
    return new Map(tables.map(({ name }) => [name, ask<Stored>(`SELECT * FROM ${name}`)]));
  }

  columns(id: string, table: string): Set<string> {
    const all = this.#place(id).rows.prepare(`PRAGMA table_info(${table})`).all();
    return new Set((all as { name: string }[]).map(({ name }) => name));
  }

  /** The next call meets a fresh instance; what the last one had under way ends first. */
  async evict(id: string): Promise<void> {
    const place = this.#place(id);
    await Promise.all(place.background);
    place.object = undefined;
    place.directory = undefined;
    place.plan = undefined;
  }

  /** In the middle of whatever it does: nothing that it had under way reaches its rows any more. */
  crash(id: string): void {
    const place = this.#place(id);
    place.life.isCut = true;
    place.life = { isCut: false };
    place.background.clear();
    place.object = undefined;
    place.plan = undefined;
  }

  /** Whether anything was ever addressed by this name. */
  knows(name: string): boolean {
    return this.#places.has(name);
  }

  async ring(id: string): Promise<boolean> {
    const place = this.#place(id);
    if (place.alarm === undefined) return false;
    place.alarm = undefined;
    // A plan is called by its tenant and its name.
    const object = id.includes("/") ? this.#plan(id) : (place.directory ?? this.#object(id));
    await object.alarm();
    return true;
  }

  /** What this one reaches the others by. */
  #envOf(from: Caller): Env {
    const to = <T extends object>(kind: Caller, find: (name: string) => T) => ({
      getByName: (name: string) => this.#seen(from, kind, find(name)),
    });
    return {
      SANDBOX: to("Sandbox", (id) => this.#object(id)) as unknown as Env["SANDBOX"],
      DIRECTORY: to("Directory", (tenant) =>
        this.#directory(tenant),
      ) as unknown as Env["DIRECTORY"],
      PLAN: to("Plan", (name) => this.#plan(name)) as unknown as Env["PLAN"],
      BERTH_SIZES: contractSizes,
      BERTH_SECRET: "the secret of a Berth in memory, which guards nothing",
    };
  }

  #seen<T extends object>(from: Caller, to: Caller, object: T): T {
    return new Proxy(object, {
      get: (target, verb) => {
        const method: unknown = Reflect.get(target, verb, target);
        if (typeof method !== "function") return method;
        return (...details: unknown[]) =>
          this.#around({ from, to, verb: String(verb) }, () => method.apply(target, details));
      },
    });
  }

  #plan(name: string): PlanObject {
    const place = this.#place(name);
    place.plan ??= new PlanObject(stateOf(place), this.#envOf("Plan"));
    return place.plan;
  }

  #directory(tenant: string): DirectoryObject {
    const place = this.#place(tenant);
    place.directory ??= new DirectoryObject(stateOf(place), this.#envOf("Directory"));
    return place.directory;
  }

  #object(id: string): SandboxObject {
    const place = this.#place(id);
    place.object ??= new ObjectInMemory(
      stateOf(place),
      this.#envOf("Sandbox"),
      fakeContainer(place.machine),
    );
    return place.object;
  }

  #place(id: string): Place {
    const known = this.#places.get(id);
    if (known !== undefined) return known;
    const place: Place = {
      rows: new DatabaseSync(":memory:"),
      alarm: undefined,
      object: undefined,
      directory: undefined,
      plan: undefined,
      machine: new FakeMachine(),
      background: new Set(),
      life: { isCut: false },
    };
    this.#places.set(id, place);
    return place;
  }
}

class ObjectInMemory extends SandboxObject {
  readonly #container: Container;

  constructor(state: DurableObjectState, env: Env, container: Container) {
    super(state, env);
    this.#container = container;
  }

  protected override openContainer(): Container {
    return this.#container;
  }
}

function stateOf(place: Place): DurableObjectState {
  const { life } = place;
  const demandLife = () => {
    if (life.isCut) throw new Error("this instance has been replaced");
  };
  const state = {
    storage: {
      sql: {
        exec: (query: string, ...bindings: (string | number | null)[]) => ({
          toArray: () => {
            demandLife();
            return place.rows.prepare(query).all(...bindings);
          },
        }),
      },
      transactionSync: <T>(work: () => T): T => {
        demandLife();
        return together(place.rows, work);
      },
      setAlarm: async (at: number) => {
        if (!life.isCut) place.alarm = at;
      },
      sync: () => (life.isCut ? new Promise(() => {}) : Promise.resolve()),
      deleteAll: async () => {
        place.rows = new DatabaseSync(":memory:");
        place.alarm = undefined;
      },
    },
    waitUntil(work: Promise<unknown>) {
      if (!life.isCut) place.background.add(work);
      const done = () => place.background.delete(work);
      void work.then(done, (error: unknown) => {
        done();
        if (!life.isCut) throw error;
      });
    },
    getWebSockets: () => [],
    setWebSocketAutoResponse: () => undefined,
  };
  // Only what a sandbox asks of its object is there.
  return state as unknown as DurableObjectState;
}
