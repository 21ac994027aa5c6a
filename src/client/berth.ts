/** The entry of the SDK: all sandboxes, plans and events of one key. The key is in no object that this returns. */
import type { Counts, ListedSandbox, SandboxesInput } from "../protocol/directory.ts";
import type { CreateInput, Sandbox as SandboxInfo, StateName } from "../protocol/sandbox.ts";
import type { SignIn } from "../protocol/sign-in.ts";
import { berthCalls } from "./calls.ts";
import { type ConnectOptions, clientConfig } from "./connect.ts";
import { createHttpClient } from "./http/http-client.ts";
import type { CallOptions } from "./http/request.ts";
import { Images } from "./images.ts";
import { Keys } from "./keys.ts";
import { type Page, toPage } from "./page.ts";
import { Plan, Plans } from "./plans.ts";
import { Sandbox } from "./sandbox.ts";
import { type FollowEventsOptions, followEvents, type TenantEvent } from "./streams/events.ts";
import type { Connection } from "./target.ts";
import { Templates } from "./templates.ts";

/** Options of `berth.create`. */
export type CreateOptions = CallOptions & {
  /** A repeated call with the same key returns the same sandbox. Default: a random one for each call. */
  idempotencyKey?: string | undefined;
  /** The token of the lease of the sandbox that is replaced. Default: none. */
  lease?: string | undefined;
  /** Replaces a sandbox even if its lease is held. Default: false. */
  force?: boolean | undefined;
};

/** Options of `berth.list`. */
export type ListOptions = CallOptions & {
  /** Only sandboxes in this state or in one of these. Default: all. */
  state?: StateName | readonly StateName[] | undefined;
  /** Only sandboxes whose scope has these values. Default: all. */
  scope?:
    | { repo?: string | undefined; branch?: string | undefined; config?: string | undefined }
    | undefined;
  /** Only sandboxes with all of these values. Default: all. */
  metadata?: Readonly<Record<string, string>> | undefined;
  /** Only sandboxes that this key created. Default: false. */
  mine?: boolean | undefined;
  /** The most sandboxes of the page. Default: 100. */
  limit?: number | undefined;
  /** The `nextCursor` of the page before. Default: the first page. */
  cursor?: string | undefined;
};

/** One page of sandboxes. */
export type SandboxPage = Page<ListedSandbox> & {
  /** Identifies the owner of the key. */
  readonly tenantId: string | undefined;
};

/** A sandbox whose facts are known. */
export type KnownSandbox = Sandbox & { readonly info: SandboxInfo };

/**
 * All sandboxes and plans of one key.
 *
 * @example
 * ```ts
 * const berth = Berth.connect();
 * const sandbox = await berth.create({ idleTimeoutMs: 600_000, env: { CI: "1" } });
 * const { stdout, exitCode } = await sandbox.exec("npm test", { timeoutMs: 120_000 });
 * for (const { id, state } of await berth.list({ state: "running" })) console.log(id, state);
 * ```
 */
export class Berth {
  /** Groups of several sandboxes that are committed or rolled back together. */
  readonly plans: Plans;
  /** The root file systems of the machine. */
  readonly images: Images;
  /** With an administrator's key: the keys of all tenants. */
  readonly keys: Keys;
  /** File trees that were built by steps, from which sandboxes start. */
  readonly templates: Templates;
  readonly #connection: Connection;

  private constructor(connection: Connection) {
    this.#connection = connection;
    this.keys = new Keys(connection.client);
    this.images = new Images(berthCalls(connection.client));
    this.templates = new Templates(berthCalls(connection.client));
    this.plans = new Plans(berthCalls(connection.client));
  }

  /**
   * Makes a client of the Berth at `url`. Sends no request itself. Without options it takes `BERTH_URL` and `BERTH_KEY`,
   * and where these are not set, the server that this user runs on this machine.
   */
  static connect(options: ConnectOptions = {}): Berth {
    const config = clientConfig(options);
    const { url, clock } = config;
    const { WebSocket } = options;
    return new Berth({ client: createHttpClient(config), url, clock, WebSocket });
  }

  /** Creates a sandbox. With a `scope` or an idempotency key it returns the sandbox if it exists. */
  async create(input: CreateInput = {}, options: CreateOptions = {}): Promise<KnownSandbox> {
    const info = await this.#calls.create(input, options);
    return new Sandbox(this.#connection, info.id, info) as KnownSandbox;
  }

  /** Gets a sandbox by its id. Throws `not_found` if this key has no such sandbox. */
  async get(id: string, options: CallOptions = {}): Promise<KnownSandbox> {
    const info = await this.#calls.sandbox(id).get(options);
    return new Sandbox(this.#connection, id, info) as KnownSandbox;
  }

  /** A handle of the sandbox with this id. Sends no request, so its calls throw `not_found` if there is none. */
  sandbox(id: string): Sandbox {
    return new Sandbox(this.#connection, id);
  }

  /** A handle of the plan with this name. Sends no request. */
  plan(name: string): Plan {
    return new Plan(this.#calls.plan(name), name);
  }

  /** One page of the sandboxes that match, newest first. */
  async list(options: ListOptions = {}): Promise<SandboxPage> {
    const { sandboxes, nextCursor, tenantId } = await this.#calls.list(toListQuery(options));
    return toPage(sandboxes, { nextCursor, tenantId });
  }

  /** The number of sandboxes in each state. */
  counts(options: CallOptions = {}): Promise<Counts> {
    return this.#calls.counts(options);
  }

  /**
   * Creates a ticket that signs a browser in once, within a minute, with the rights of this key: open
   * `<address>/#ticket=<ticket>`.
   */
  createSignIn(options: CallOptions = {}): Promise<SignIn> {
    const client = this.#connection.client.with(options);
    return client.request({ method: "POST", path: "/v1/sign-ins" });
  }

  /** The events of all sandboxes, each once and in order. Reconnects after a lost connection; never ends by itself. */
  events(options: FollowEventsOptions = {}): AsyncIterable<TenantEvent> {
    return followEvents<TenantEvent>(this.#calls, options);
  }

  /** The same Berth, with these options for all its calls: `berth.with({ signal })`. */
  with(options: CallOptions): Berth {
    return new Berth({ ...this.#connection, client: this.#connection.client.with(options) });
  }

  get #calls() {
    return berthCalls(this.#connection.client);
  }
}

function toListQuery(options: ListOptions): SandboxesInput & CallOptions {
  const { state, scope, metadata = {}, mine, ...others } = options;
  const states = typeof state === "string" ? state : state?.join(",");
  return {
    ...others,
    ...(states === undefined ? {} : { state: states }),
    ...(scope?.repo === undefined ? {} : { "scope.repo": scope.repo }),
    ...(scope?.branch === undefined ? {} : { "scope.branch": scope.branch }),
    ...(scope?.config === undefined ? {} : { "scope.config": scope.config }),
    metadata: Object.entries(metadata).map(([key, value]) => `${key}=${value}`),
    ...(mine === true ? { mine: "1" } : {}),
  } as SandboxesInput & CallOptions;
}
