/** Calls on one sandbox over REST, and what a test does to its objects. Import it as `api`. */
import { runInDurableObject } from "cloudflare:test";
import type { Right } from "../../src/protocol/rights.ts";
import { call, json, keys, pathOf } from "./calls.ts";
import { containerOf } from "./container.ts";

/** The body of the response of one sandbox. */
export const request = (method: string, id: string, tail = "", body?: unknown) =>
  json(call(method, pathOf(id, tail), { body }));

export const get = (id: string) => json(call("GET", pathOf(id)));
export const state = async (id: string) => (await get(id)).state;

export const exec = (id: string, command: string, headers: Record<string, string> = {}) =>
  call("POST", pathOf(id, "/exec"), { body: { command }, headers });

export const getLease = (id: string) => json(call("GET", pathOf(id, "/lease")));
export const acquireLease = (id: string, body: object = {}) =>
  json(call("POST", pathOf(id, "/lease"), { body }));
export const releaseLease = (id: string, token: unknown) =>
  json(call("DELETE", pathOf(id, "/lease"), { headers: leaseHeader(token) }));
export const leaseHeader = (token: unknown) => ({ "berth-lease": String(token) });

// biome-ignore lint/suspicious/noExplicitAny: reads of fields that are not there must fail in the test, not here
export async function events(id: string): Promise<any[]> {
  const { events } = await json(call("GET", pathOf(id, "/events?limit=1000")));
  return events.map(({ event }: { event: unknown }) => event);
}

export async function makeToken(id: string, rights: readonly Right[], ttlMs?: number) {
  const made = await call("POST", pathOf(id, "/tokens"), { body: { rights, ttlMs } });
  if (made.status !== 201) throw new Error(`the token was answered ${made.status}`);
  return String((await json(made)).token);
}

export const makeTicket = async (id: string, key = keys.local) =>
  String((await json(call("POST", pathOf(id, "/tickets"), { key }))).ticket);

/** Runs a statement in the storage of the object, without its knowledge. */
export const runSql = (stub: DurableObjectStub, query: string, ...bindings: unknown[]) =>
  runInDurableObject(stub, (_object, { storage }) =>
    storage.sql.exec(query, ...bindings).toArray(),
  );

/** The object is lost with everything in its memory. */
export const crash = (stub: DurableObjectStub) =>
  runInDurableObject(stub, (_object, state) => state.abort("a crash")).catch(() => undefined);

export const facts = (id: string) => containerOf(id).facts();
