/**
 * A complete Berth in one Node process: the real Worker entry, objects and core, with rows and containers in memory
 * and without sockets. Tests can evict and crash its objects, ring their alarms and set their clock.
 */
import { DatabaseSync } from "node:sqlite";
import type { Env } from "../../src/config.ts";
import { DirectoryObject } from "../../src/objects/directory/object.ts";
import { KeysObject } from "../../src/objects/keys/object.ts";
import { PlanObject } from "../../src/objects/plan/object.ts";
import { SandboxObject } from "../../src/objects/sandbox/object.ts";
import { TemplatesObject } from "../../src/objects/templates/object.ts";
import type { BerthApi } from "../../src/protocol/api.ts";
import type { Right } from "../../src/protocol/rights.ts";
import type { ContainerRuntime } from "../../src/runtime/runtime.ts";
import { AgentCallback, type AgentCallbackProps } from "../../src/worker/agent-callback.ts";
import { BerthEntry } from "../../src/worker/rpc.ts";
import { contractSizes } from "../contract/sizes.ts";
import type { FakeTree } from "./agent/tree.ts";
import { FakeContainer, fakeRuntime } from "./container.ts";
import { agentMachine } from "./platform/agent-machine.ts";
import type { PlatformMachine } from "./platform/machine.ts";
import { transaction } from "./transaction.ts";

type Instance = {
  rows: DatabaseSync;
  alarm: number | undefined;
  kind: Kind;
  object: SandboxObject | DirectoryObject | PlanObject | KeysObject | TemplatesObject | undefined;
  container: FakeContainer;
  /** Where containers are the platform's. */
  machine: PlatformMachine<FakeTree> | undefined;
  /** Work that the object continues after its response. */
  background: Set<Promise<unknown>>;
  /** The running instance; cut off after a crash. */
  current: { isCut: boolean };
};

/** One stored row. */
export type StoredRow = Record<string, string | number | null>;

type Kind = "Directory" | "Sandbox" | "Plan" | "Keys" | "Templates";
export type ObjectCall = { from: Kind | "Worker"; to: Kind; verb: string };
type CallInterceptor = <T>(call: ObjectCall, work: () => T) => T;

/** Like workerd's: fails unless exactly `length` bytes pass. */
class FixedLengthStream extends TransformStream<Uint8Array, Uint8Array> {
  constructor(length: number) {
    let remaining = length;
    super({
      transform(chunk, controller) {
        remaining -= chunk.length;
        if (remaining < 0) throw new TypeError("more bytes came than were said");
        controller.enqueue(chunk);
      },
      flush() {
        if (remaining > 0) throw new TypeError("fewer bytes came than were said");
      },
    });
  }
}

// Globals of workerd that Node lacks. The first is never used without sockets.
Object.assign(globalThis, {
  WebSocketRequestResponsePair: class {},
  IdentityTransformStream: TransformStream,
  FixedLengthStream,
});

/** The templates and the Directory of a tenant have the same name. */
const instanceName = (kind: Kind, name: string) =>
  kind === "Templates" ? `templates of ${name}` : name;

export class FakeBerth {
  readonly #instances = new Map<string, Instance>();
  readonly #intercept: CallInterceptor;
  readonly #isPlatform: boolean;
  /** Sets up each platform before its first container. */
  onMachine: (machine: PlatformMachine<FakeTree>) => void = () => {};

  /** `intercept` wraps each call between objects. `platform`: containers are attached to objects as on Cloudflare. */
  constructor(
    intercept: CallInterceptor = (_call, work) => work(),
    { platform = false }: { platform?: boolean } = {},
  ) {
    this.#intercept = intercept;
    this.#isPlatform = platform;
  }

  /** The API as a service binding with these props offers it. */
  bind(props: { tenant?: string; rights?: readonly Right[] }): BerthApi {
    return new BerthEntry({ props } as never, this.#envOf("Worker"));
  }

  /** The object as other objects reach it. */
  object(id: string): SandboxObject {
    return this.#object("Sandbox", id) as SandboxObject;
  }

  container(id: string): FakeContainer {
    return this.#instance(id).container;
  }

  /** The platform of a sandbox. */
  machine(id: string): PlatformMachine<FakeTree> {
    const { machine } = this.#instance(id);
    if (machine === undefined) throw new Error("this Berth has an engine, not a platform");
    return machine;
  }

  alarm(id: string): number | undefined {
    return this.#instance(id).alarm;
  }

  /** Runs a query directly on the rows. */
  rows(id: string, query: string, ...bindings: (string | number | null)[]): void {
    this.#instance(id)
      .rows.prepare(query)
      .run(...bindings);
  }

  /** All stored rows, by table. */
  dump(id: string): Map<string, StoredRow[]> {
    const query = <T>(query: string) => this.#instance(id).rows.prepare(query).all() as T[];
    const tables = query<{ name: string }>(
      "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'",
    );
    return new Map(tables.map(({ name }) => [name, query<StoredRow>(`SELECT * FROM ${name}`)]));
  }

  columns(id: string, table: string): Set<string> {
    const all = this.#instance(id).rows.prepare(`PRAGMA table_info(${table})`).all();
    return new Set((all as { name: string }[]).map(({ name }) => name));
  }

  /** The next call meets a fresh instance. Background work of the current one ends first. */
  async evict(id: string): Promise<void> {
    const instance = this.#instance(id);
    await Promise.all(instance.background);
    instance.object = undefined;
    instance.machine?.sleep();
  }

  /** Stops the instance at once: nothing that it still does reaches its rows. */
  crash(id: string): void {
    const instance = this.#instance(id);
    instance.current.isCut = true;
    instance.current = { isCut: false };
    instance.background.clear();
    instance.object = undefined;
    instance.machine?.sleep();
  }

  /** Whether any object was ever addressed by this name. */
  exists(name: string): boolean {
    return this.#instances.has(name);
  }

  async ringAlarm(id: string): Promise<boolean> {
    const instance = this.#instance(id);
    if (instance.alarm === undefined) return false;
    instance.alarm = undefined;
    await this.#object(instance.kind, id).alarm();
    return true;
  }

  /** The bindings by which one kind of object reaches the others. */
  #envOf(from: Kind | "Worker"): Env {
    const to = (kind: Kind) =>
      ({
        getByName: (name: string) =>
          this.#intercepted(from, kind, this.#object(kind, instanceName(kind, name))),
      }) as never;
    return {
      SANDBOX: to("Sandbox"),
      DIRECTORY: to("Directory"),
      PLAN: to("Plan"),
      KEYS: to("Keys"),
      TEMPLATES: to("Templates"),
      BERTH_SIZES: contractSizes,
      BERTH_SECRET: "the secret of a Berth in memory, which guards nothing",
    };
  }

  #intercepted<T extends object>(from: Kind | "Worker", to: Kind, object: T): T {
    return new Proxy(object, {
      get: (target, verb) => {
        const method: unknown = Reflect.get(target, verb, target);
        if (typeof method !== "function") return method;
        return (...details: unknown[]) =>
          this.#intercept({ from, to, verb: String(verb) }, () => method.apply(target, details));
      },
    });
  }

  #object(kind: Kind, name: string) {
    const instance = this.#instance(name);
    instance.kind = kind;
    instance.object ??= this.#create(instance);
    return instance.object;
  }

  #create(instance: Instance) {
    const { kind, container } = instance;
    const state = durableStateOf(instance);
    const env = this.#envOf(kind);
    if (kind === "Directory") return new DirectoryObject(state, env);
    if (kind === "Plan") return new PlanObject(state, env);
    if (kind === "Keys") return new KeysObject(state, env);
    if (kind === "Templates")
      return new TemplatesInMemory(state, env, (handle) => this.#removeTree(handle));
    if (instance.machine !== undefined) {
      Object.assign(state, { container: instance.machine.attach(), ...platformContext(env) });
      return new SandboxObject(state, env);
    }
    return new ObjectInMemory(state, env, fakeRuntime(container));
  }

  /** A tree that a template has taken over is still in the container that saved it. */
  #findTree(handle: string): FakeTree | undefined {
    for (const { container } of this.#instances.values()) {
      const tree = container.snapshots.get(handle);
      if (tree !== undefined) return tree;
    }
    return undefined;
  }

  async #removeTree(handle: string): Promise<void> {
    for (const { container } of this.#instances.values()) container.snapshots.delete(handle);
  }

  #instance(id: string): Instance {
    const known = this.#instances.get(id);
    if (known !== undefined) return known;
    const instance: Instance = {
      rows: new DatabaseSync(":memory:"),
      alarm: undefined,
      kind: "Sandbox",
      object: undefined,
      container: new FakeContainer(),
      machine: undefined,
      background: new Set(),
      current: { isCut: false },
    };
    instance.container.findElsewhere = (handle) => this.#findTree(handle);
    if (this.#isPlatform) {
      instance.machine = agentMachine(instance.container);
      this.onMachine(instance.machine);
    }
    this.#instances.set(id, instance);
    return instance;
  }
}

/** What an object of the platform has besides its storage. */
function platformContext(env: Env): object {
  return {
    id: { toString: () => "0".repeat(64) },
    exports: {
      ContainerProxy: ({ props }: { props: object }) => ({ props, fetch: proxy }),
      AgentCallback: (context: { props: AgentCallbackProps }) =>
        new AgentCallback(context as never, env),
    },
  };
}

async function proxy(): Promise<Response> {
  return new Response("through the proxy");
}

class TemplatesInMemory extends TemplatesObject {
  readonly #remove: (handle: string) => Promise<void>;

  constructor(state: DurableObjectState, env: Env, remove: (handle: string) => Promise<void>) {
    super(state, env);
    this.#remove = remove;
  }

  protected override removeTree(handle: string): Promise<void> {
    return this.#remove(handle);
  }
}

class ObjectInMemory extends SandboxObject {
  readonly #container: ContainerRuntime;

  constructor(state: DurableObjectState, env: Env, container: ContainerRuntime) {
    super(state, env);
    this.#container = container;
  }

  protected override openRuntime(): ContainerRuntime {
    return this.#container;
  }
}

function durableStateOf(instance: Instance): DurableObjectState {
  const { current } = instance;
  const refuseWhenReplaced = () => {
    if (current.isCut) throw new Error("this instance has been replaced");
  };
  const state = {
    storage: {
      sql: {
        exec: (query: string, ...bindings: (string | number | null)[]) => ({
          toArray: () => {
            refuseWhenReplaced();
            return instance.rows.prepare(query).all(...bindings);
          },
        }),
      },
      transactionSync: <T>(work: () => T): T => {
        refuseWhenReplaced();
        return transaction(instance.rows, work);
      },
      setAlarm: async (time: number) => {
        if (!current.isCut) instance.alarm = time;
      },
      sync: () => (current.isCut ? new Promise(() => {}) : Promise.resolve()),
      deleteAll: async () => {
        instance.rows = new DatabaseSync(":memory:");
        instance.alarm = undefined;
      },
    },
    waitUntil(work: Promise<unknown>) {
      if (!current.isCut) instance.background.add(work);
      const done = () => instance.background.delete(work);
      void work.then(done, (error: unknown) => {
        done();
        if (!current.isCut) throw error;
      });
    },
    getWebSockets: () => [],
    setWebSocketAutoResponse: () => undefined,
  };
  // Only the parts of DurableObjectState that the objects use.
  return state as unknown as DurableObjectState;
}
