/**
 * The environment of the contract suite in workerd: containers in memory, evictions, alarms rung by hand, a clock
 * that can stand.
 */
import { evictDurableObject, runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { vi } from "vitest";
import type { BerthApi, PlanApi, SandboxApi, TemplateApi } from "../../src/protocol/api.ts";
import type { Power, Socket, World } from "../contract/sandbox-api.ts";
import { fetchWorker, keys, stubOf } from "./calls.ts";
import { containerOf } from "./container.ts";
import { restBerth } from "./rest.ts";

export const alarmOf = (id: string) =>
  runInDurableObject(stubOf(id), (_object, state) => state.storage.getAlarm());

const shared = {
  can: new Set<Power>([
    "clock",
    "compare",
    "evict",
    "fillEvents",
    "holdStarts",
    "ran",
    "ring",
    "sockets",
  ]),
  inside: (id: string) => containerOf(id).facts(),
  holdStarts: (id: string) => containerOf(id).fault({ verb: "start", hold: true }),
  goOn: (id: string) => containerOf(id).release(),
  evict: (id: string) =>
    id.includes("/") ? evictDurableObject(env.PLAN.getByName(id)) : evictDurableObject(stubOf(id)),
  clock(time: number) {
    vi.useFakeTimers({ toFake: ["Date"], now: time });
  },
  fillEvents: (id: string, count: number) =>
    runInDurableObject(stubOf(id), (_object, { storage }) => {
      storage.sql.exec(
        `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
         INSERT INTO event (at, data) SELECT ?, '{"type":"tokens","what":"revoked"}' FROM n`,
        count,
        Date.now(),
      );
    }),
  ring: (id: string) => runDurableObjectAlarm(stubOf(id)),
  connect: connectTerminal,
};

export const overRest: World = {
  ...shared,
  berth: restBerth(keys.local),
  other: restBerth(keys.other),
  async leaser(id) {
    const { token } = await restBerth(keys.local)
      .sandbox(id)
      .createToken({ rights: ["read", "lease"] });
    return restBerth(token).sandbox(id);
  },
};

export const overRpc: World = {
  ...shared,
  berth: rpcBerth(env.BERTH),
  other: rpcBerth(env.OTHER),
  leaser: async (id) => rpcBerth(env.LEASER).sandbox(id),
};

async function connectTerminal(
  id: string,
  terminal: string,
  query: string,
  protocol?: string,
): Promise<Socket> {
  const headers: Record<string, string> = {
    authorization: `Bearer ${keys.local}`,
    upgrade: "websocket",
  };
  if (protocol !== undefined) headers["sec-websocket-protocol"] = protocol;
  const url = `http://berth.test/v1/sandboxes/${id}/terminals/${terminal}/connect?${query}`;
  const { status, webSocket } = await fetchWorker(new Request(url, { headers }));
  if (webSocket === null) throw new Error(`the socket was refused: ${status}`);
  const received: Socket["received"][number][] = [];
  let closed: number | undefined;
  webSocket.addEventListener("message", ({ data }) => {
    const isFrame = typeof data === "string";
    received.push(isFrame ? { frame: data } : { bytes: new TextDecoder().decode(data) });
  });
  webSocket.addEventListener("close", ({ code }) => {
    closed = code;
  });
  webSocket.binaryType = "arraybuffer";
  webSocket.accept();
  return {
    received,
    get closed() {
      return closed;
    },
    send: (data) => webSocket.send(data),
    close: () => webSocket.close(1000, "enough"),
  };
}

type Bound = typeof env.BERTH;
type Verb = (...args: unknown[]) => PromiseLike<unknown>;

/** RPC returns thenables, not promises: each is awaited once, here. */
function rpcBerth(bound: Bound): BerthApi {
  return {
    create: async (call, options) => await bound.create(call, options),
    list: async (query) => await bound.list(query),
    counts: async () => await bound.counts(),
    streamEvents: async (query) => await bound.streamEvents(query),
    events: async (query) => await bound.events(query),
    images: async () => await bound.images(),
    image: async (reference) => await bound.image(reference),
    buildTemplate: async (call) => await bound.buildTemplate(call),
    templates: async () => await bound.templates(),
    template: (reference) => awaited<TemplateApi>(() => bound.template(reference)),
    plans: async (query) => await bound.plans(query),
    sandbox: (id) => awaited<SandboxApi>(() => bound.sandbox(id)),
    plan: (name) => awaited<PlanApi>(() => bound.plan(name)),
  };
}

function awaited<Api extends object>(target: () => unknown): Api {
  return new Proxy({} as Api, {
    get(_target, verb: string) {
      // Not a promise itself: an async function that returned it would resolve to the RPC stub.
      if (verb === "then") return undefined;
      return async (...args: unknown[]) =>
        await (target() as Record<string, Verb>)[verb]?.(...args);
    },
  });
}
