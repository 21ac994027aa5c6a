/**
 * Connects the SDK to a Berth: its address, key and `fetch`, and the methods that concern all sandboxes. The key stays
 * in this module: no returned object shows it.
 */
import type { BerthApi, PlanApi } from "../protocol/api.ts";
import { type Cancellable, cancellable } from "./http/cancellable.ts";
import { type ClientConfig, type Clock, createHttpClient, type Fetch } from "./http/http-client.ts";
import { randomId } from "./http/random-id.ts";
import { type CallOptions, type HttpClient, pathSegment, type Query } from "./http/request.ts";
import { defaultRetries, type RetryPolicy } from "./http/retry.ts";
import { sleep } from "./http/timing.ts";
import { type SandboxHandle, type Sockets, sandboxHandle } from "./sandbox.ts";
import { streamEvents } from "./special.ts";
import { type FollowEventsOptions, followEvents, type TenantEvent } from "./streams/events.ts";
import type { WebSocketConstructor } from "./terminal/sockets.ts";

/** Where Berth is and how to reach it. */
export type ConnectOptions = {
  /** The address of Berth, such as `http://127.0.0.1:8787`. */
  url: string;
  /** An API key, or the token of one sandbox. A function is called before each request, for keys that change. */
  key: string | (() => string | Promise<string>);
  /** Sends the requests. Default: the platform's `fetch`. */
  fetch?: Fetch;
  /**
   * Opens connections that stay, such as leases and terminals. Default: the platform's `WebSocket`. Node 20 has none:
   * pass the one of the package `ws`.
   */
  WebSocket?: WebSocketConstructor;
  /** When a failed request is sent again. Default: up to 4 times within 30,000 ms. */
  retry?: Partial<RetryPolicy>;
  /** Time and randomness, for tests. Default: the real ones. */
  clock?: Partial<Clock>;
};

type BerthVerbs = Omit<BerthApi, "sandbox" | "plan">;

/**
 * All sandboxes and plans of one key. `connect` returns it.
 *
 * @example
 * ```ts
 * const { id } = await berth.create({ idleTimeoutMs: 600_000, env: { CI: "1" } });
 * const sandbox = berth.sandbox(id);
 * const { stdout, exitCode } = await sandbox.exec({ argv: ["npm", "test"], timeoutMs: 120_000 });
 * const { sandboxes } = await berth.list({ state: "running" });
 * ```
 */
export interface Berth extends Cancellable<BerthVerbs> {
  /** A handle of one sandbox. Sends no request, so the sandbox need not exist. */
  sandbox(id: string): SandboxHandle;
  /** A handle of one plan. Sends no request, so the plan need not exist. */
  plan(name: string): Cancellable<PlanApi>;
  /** The events of all sandboxes, each once and in order. Reconnects after a lost connection; never ends by itself. */
  followEvents(options?: FollowEventsOptions): AsyncIterable<TenantEvent>;
  /** The same Berth, with these options for all its calls: `berth.with({ signal })`. */
  with(options: CallOptions): Berth;
}

/**
 * Makes a client of the Berth at `url`. Sends no request itself.
 *
 * @example
 * ```ts
 * const berth = connect({ url: "http://127.0.0.1:8787", key: process.env.BERTH_KEY ?? "" });
 * const { id } = await berth.create();
 * const sandbox = berth.sandbox(id);
 * await sandbox.waitUntilRunning();
 * const { exitCode, stdout } = await sandbox.exec({ command: "echo hello" });
 * await sandbox.destroy();
 * ```
 */
export function connect(options: ConnectOptions): Berth {
  const { url, key, fetch } = options;
  const config: ClientConfig = {
    url: checkUrl(url),
    key: typeof key === "string" ? () => key : key,
    fetch: fetch ?? ((to, init) => globalThis.fetch(to, init)),
    retry: { ...defaultRetries, ...options.retry },
    clock: { now: () => performance.now(), chance: Math.random, sleep, ...options.clock },
  };
  const sockets = { url: config.url, WebSocket: options.WebSocket };
  return makeBerth(createHttpClient(config), sockets, config.clock);
}

function makeBerth(client: HttpClient, sockets: Sockets, clock: Clock): Berth {
  const verbs = cancellable(client, berthVerbs);
  return {
    ...verbs,
    followEvents: (options) => followEvents<TenantEvent>(verbs, options),
    sandbox: (id) => sandboxHandle(client, sockets, id, clock),
    plan: (name) => cancellable(client, (over) => planMethods(over, name)),
    with: (options) => makeBerth(client.with(options), sockets, clock),
  };
}

function berthVerbs(client: HttpClient): BerthVerbs {
  return {
    create: (body = {}, { idempotencyKey, lease, force } = {}) =>
      client.request({
        method: "POST",
        path: "/v1/sandboxes",
        body,
        // A random key by default: after a lost response the repeated call must not create a second sandbox.
        headers: { "idempotency-key": idempotencyKey ?? randomId(16), "berth-lease": lease },
        query: { force },
        isRepeatable: true,
      }),
    list: (query = {}) =>
      client.request({ method: "GET", path: "/v1/sandboxes", query: query as Query }),
    counts: () => client.request({ method: "GET", path: "/v1/counts" }),
    events: (query = {}) => client.request({ method: "GET", path: "/v1/events", query }),
    streamEvents: (query) => streamEvents(client, "/v1/events", query),
    plans: (query = {}) =>
      client.request({ method: "GET", path: "/v1/plans", query: query as Query }),
  };
}

/** The methods of one plan: each sends one request. */
function planMethods(client: HttpClient, name: string): PlanApi {
  const plan = `/v1/plans/${pathSegment(name)}`;
  const member = (key: string) => `${plan}/sandboxes/${pathSegment(key)}`;
  const run = (what: "commit" | "rollback", body: object, idempotencyKey: string | undefined) => ({
    method: "POST" as const,
    path: `${plan}/${what}`,
    body,
    headers: { "idempotency-key": idempotencyKey },
    isRepeatable: idempotencyKey !== undefined,
  });
  return {
    put: () => client.request({ method: "PUT", path: plan, body: {}, isRepeatable: true }),
    get: () => client.request({ method: "GET", path: plan }),
    remove: (query = {}) => client.request({ method: "DELETE", path: plan, query }),
    putMember: (key, body) =>
      client.request({ method: "PUT", path: member(key), body, isRepeatable: true }),
    removeMember: (key, query = {}) =>
      client.request({ method: "DELETE", path: member(key), query }),
    commit: (body = {}, { idempotencyKey } = {}) =>
      client.request(run("commit", body, idempotencyKey)),
    rollback: (body = {}, { idempotencyKey } = {}) =>
      client.request(run("rollback", body, idempotencyKey)),
    commits: (query = {}) => client.request({ method: "GET", path: `${plan}/commits`, query }),
    commitOf: (n, query = {}) =>
      client.request({ method: "GET", path: `${plan}/commits/${n}`, query }),
  };
}

function checkUrl(url: string): string {
  const isHttp = URL.canParse(url) && /^https?:$/.test(new URL(url).protocol);
  if (!isHttp) throw new TypeError("connect: `url` must be an http or https URL");
  return url.replace(/\/+$/, "");
}
