/**
 * Owns the way into the SDK: where Berth is, with which key, by which fetch; and the verbs over all sandboxes.
 * Does not own those of one sandbox (sandbox.ts). The key stays in here: no object that is given out shows it.
 */
import type { BerthApi } from "../protocol/api.ts";
import type { PlanApi } from "../protocol/plan-api.ts";
import { type Cancellable, cancellable } from "./http/cancellable.ts";
import { type Clock, type Door, type Fetch, makeLink } from "./http/http-client.ts";
import { drawn } from "./http/random-id.ts";
import type { CallOptions, Link, Query } from "./http/request.ts";
import { type RetryPolicy, usualRetries } from "./http/retry.ts";
import { planOf, plansPath } from "./plans.ts";
import { type SandboxHandle, type Sockets, sandboxHandle } from "./sandbox.ts";
import { type FollowEventsOptions, followEvents, type TenantEvent } from "./streams/events.ts";
import { pause, type SocketMaker } from "./terminal/sockets.ts";
import { streamOf } from "./verbs.ts";

export type ConnectOptions = {
  /** Of Berth's door, such as `http://127.0.0.1:8787`. */
  url: string;
  /** An API key, or a token of one sandbox; a function where it changes. */
  key: string | (() => string | Promise<string>);
  /** The platform's own unless given. */
  fetch?: Fetch;
  /** The platform's own unless given. Node 20 has none: give it that of the package `ws`. */
  WebSocket?: SocketMaker;
  retry?: Partial<RetryPolicy>;
  /** For tests: the real one unless given. */
  clock?: Partial<Clock>;
};

type BerthVerbs = Omit<BerthApi, "sandbox" | "plan">;

export interface Berth extends Cancellable<BerthVerbs> {
  /** A handle; asks nothing. */
  sandbox(id: string): SandboxHandle;
  /** A handle; asks nothing. */
  plan(name: string): Cancellable<PlanApi>;
  /** What happens to all sandboxes, each event once and in order; cut connections are made up for. */
  followEvents(options?: FollowEventsOptions): AsyncIterable<TenantEvent>;
  /** The same Berth; all its calls have these options. */
  with(options: CallOptions): Berth;
}

export function connect(options: ConnectOptions): Berth {
  const door = doorOf(options);
  const sockets = { url: door.url, WebSocket: options.WebSocket };
  return berthOver(makeLink(door), sockets, door.clock);
}

function berthOver(link: Link, sockets: Sockets, clock: Clock): Berth {
  const verbs = cancellable(link, berthVerbs);
  return {
    ...verbs,
    followEvents: (options) => followEvents<TenantEvent>(verbs, options),
    sandbox: (id) => sandboxHandle(link, sockets, id, clock),
    plan: (name) => cancellable(link, (over) => planOf(over, name)),
    with: (options) => berthOver(link.with(options), sockets, clock),
  };
}

function berthVerbs(link: Link): BerthVerbs {
  return {
    create: (body = {}, { idempotencyKey, lease, force } = {}) =>
      link.ask({
        method: "POST",
        path: "/v1/sandboxes",
        body,
        // Without a key of the caller's own: an answer that is lost must not leave a second sandbox.
        headers: { "idempotency-key": idempotencyKey ?? drawn(16), "berth-lease": lease },
        query: { force },
        isRepeatable: true,
      }),
    list: (query = {}) => link.ask({ method: "GET", path: "/v1/sandboxes", query: query as Query }),
    counts: () => link.ask({ method: "GET", path: "/v1/counts" }),
    events: (query = {}) => link.ask({ method: "GET", path: "/v1/events", query }),
    streamEvents: (query) => streamOf(link, "/v1/events", query),
    plans: (query = {}) => link.ask({ method: "GET", path: plansPath(), query: query as Query }),
  };
}

function doorOf({ url, key, fetch, retry, clock }: ConnectOptions): Door {
  return {
    url: checkedUrl(url),
    key: typeof key === "string" ? () => key : key,
    fetch: fetch ?? ((to, init) => globalThis.fetch(to, init)),
    retry: { ...usualRetries, ...retry },
    clock: { ...realClock, ...clock },
  };
}

const realClock: Clock = {
  now: () => performance.now(),
  chance: Math.random,
  sleep: pause,
};

function checkedUrl(url: string): string {
  const isHttp = URL.canParse(url) && /^https?:$/.test(new URL(url).protocol);
  if (!isHttp) throw new TypeError("connect: `url` must be an http or https address of Berth");
  return url.replace(/\/+$/, "");
}
