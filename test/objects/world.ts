/**
 * Owns the world of the object tests: containers in memory, evictions, alarms rung by hand, a clock that can stand.
 */
import { evictDurableObject, runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { vi } from "vitest";
import type { BerthApi, SandboxApi } from "../../src/protocol/api.ts";
import type { World } from "../contract/sandbox-api.ts";
import { keys } from "./calls.ts";
import { machine } from "./machine.ts";
import { restBerth } from "./rest.ts";

export const stubOf = (id: string) => env.SANDBOX.getByName(id);

export const alarmOf = (id: string) =>
  runInDurableObject(stubOf(id), (_object, state) => state.storage.getAlarm());

const around = {
  inside: (id: string) => machine(id).facts(),
  holdStarts: (id: string) => machine(id).fault({ verb: "start", hold: true }),
  goOn: (id: string) => machine(id).release(),
  evict: (id: string) => evictDurableObject(stubOf(id)),
  clock(at: number) {
    vi.useFakeTimers({ toFake: ["Date"], now: at });
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
};

export const overRest: World = {
  ...around,
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
  ...around,
  berth: rpcBerth(env.BERTH),
  other: rpcBerth(env.OTHER),
  leaser: async (id) => rpcBerth(env.LEASER).sandbox(id),
};

type Bound = typeof env.BERTH;
type Verb = (...args: unknown[]) => PromiseLike<unknown>;

/** A promise of RPC is not quite a promise: each is awaited once, here. */
function rpcBerth(bound: Bound): BerthApi {
  return {
    create: async (call) => await bound.create(call),
    sandbox: (id) =>
      new Proxy({} as SandboxApi, {
        get:
          (_target, verb: string) =>
          async (...args: unknown[]) => {
            const target = bound.sandbox(id) as unknown as Record<string, Verb>;
            return await target[verb]?.(...args);
          },
      }),
  };
}
