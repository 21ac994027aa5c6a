import { listDurableObjectIds } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { beforeAll, describe, expect, it } from "vitest";
import { limits } from "../../src/protocol/limits.ts";
import { badCalls, badCreates } from "./bad-calls.ts";
import { call, createSandbox, json, keys } from "./calls.ts";
import { machine } from "./machine.ts";

const of = (id: string, tail = "") => `/v1/sandboxes/${id}${tail}`;
const lease = async (id: string, body: Record<string, unknown> = {}) =>
  String((await json(call("POST", of(id, "/lease"), { body }))).token);
const release = (id: string, token: string) =>
  json(call("DELETE", of(id, "/lease"), { headers: { "berth-lease": token } }));

/** Everything of a sandbox that anybody can see, and what its container was asked to do. */
async function allOf(id: string) {
  const told = await Promise.all(
    ["", "/lease", "/metadata", "/events?limit=1000"].map((tail) =>
      json(call("GET", of(id, tail))),
    ),
  );
  const { ran, starts, calls } = await machine(id).facts();
  return { told, ran, starts, calls };
}

describe("bad input", () => {
  let id = "";
  const secrets = { mine: "", released: "", others: "", destroyed: "" };

  beforeAll(async () => {
    id = await createSandbox({ metadata: { a: "1", b: "2", c: "3" } });
    const ticket = "ticket-that-was-released";
    secrets.released = await lease(id, { ticket });
    await release(id, secrets.released);
    secrets.mine = await lease(id, { holder: "the holder", ttlMs: limits.leaseTtlMaxMs });
    secrets.others = await lease(await createSandbox());
    const gone = await createSandbox();
    secrets.destroyed = await lease(gone);
    await json(call("DELETE", of(gone, "?force=true")));
  });

  const names = badCalls(secrets).map(([what], at) => [what, at] as const);

  it("[Y29] is a long table in which no row stands twice", () => {
    expect(names.length).toBeGreaterThanOrEqual(80);
    expect(new Set(names.map(([what]) => what)).size).toBe(names.length);
  });

  it.each(names)("[Y29] is refused with its field, and nothing changes: %s", async (_what, at) => {
    const [, [method, tail, body, headers = {}], [status, code, field]] =
      badCalls(secrets)[at] ?? expect.fail("no such row");
    const before = await allOf(id);
    expect(before.told[1]).toMatchObject({ state: "held", holder: "the holder" });
    const answer = await call(method, of(id, tail), { body, headers });
    const { error } = await json(answer);
    expect({ status: answer.status, ...error }).toMatchObject({
      status,
      code,
      message: expect.any(String),
      ...(field === undefined ? {} : { field }),
    });
    if (field !== undefined) expect(error.message).toContain(field);
    expect(await allOf(id)).toEqual(before);
  });

  it.each(badCreates)("[Y29] makes no sandbox: %s", async (_what, body, field) => {
    const before = await listDurableObjectIds(env.SANDBOX);
    const answer = await call("POST", "/v1/sandboxes", { body });
    expect(answer.status).toBe(400);
    expect(await json(answer)).toMatchObject({ error: { code: "bad_request", field } });
    // One may be told of too many keys only by the object that counts them; it then keeps nothing.
    const extra = (await listDurableObjectIds(env.SANDBOX)).length - before.length;
    expect(extra).toBeLessThanOrEqual(field === "metadata" ? 1 : 0);
  });

  it("[Y29] of a destroyed sandbox stays bad, and good input is 410", async () => {
    const gone = await createSandbox({ metadata: { a: "1" } });
    const token = await lease(gone);
    await json(call("DELETE", of(gone, "?force=true")));
    const before = await allOf(gone);
    const headers = { "berth-lease": token };
    const status = async (method: string, tail: string, body?: unknown) => {
      const answer = await call(method, of(gone, tail), { body, headers });
      await answer.text();
      return answer.status;
    };
    expect(await status("PATCH", "/metadata", { "a b": "1" })).toBe(400);
    expect(await status("PATCH", "/metadata", { a: "2" })).toBe(410);
    expect(await status("POST", "/exec", { command: "true" })).toBe(410);
    expect(await status("POST", "/lease", {})).toBe(410);
    expect(await status("PUT", "/lease", {})).toBe(410);
    expect(await status("DELETE", "/lease")).toBe(410);
    expect(await allOf(gone)).toEqual(before);
  });

  it("[Q4] [Y29] is the 1,001st who waits, and the 17th of one holder", async () => {
    const full = await createSandbox();
    const token = await lease(full, { holder: "the holder", ttlMs: limits.leaseTtlMaxMs });
    const waits = (holder: string) =>
      call("POST", of(full, "/lease"), { body: { holder, queueMs: 60_000 } });
    for (let n = 0; n < limits.leaseWaitersMax; n++) {
      const holder = `holder ${Math.floor(n / limits.leaseWaitersOfHolderMax)}`;
      const queued = await waits(holder);
      if (queued.status !== 202) expect.fail(`the ${n}th was answered ${queued.status}`);
      await queued.text();
      if (n === limits.leaseWaitersOfHolderMax - 1) {
        const more = await waits(holder);
        expect(more.status).toBe(429);
        expect(await json(more)).toMatchObject({
          error: { code: "queue_full", waitersOfHolderMax: limits.leaseWaitersOfHolderMax },
        });
      }
    }
    const last = await waits("somebody new");
    expect(last.status).toBe(429);
    expect(await json(last)).toMatchObject({
      error: { code: "queue_full", waitersMax: limits.leaseWaitersMax },
    });
    const state = await json(call("GET", of(full, "/lease")));
    expect(state.waiterCount).toBe(limits.leaseWaitersMax);
    expect(state.waiters).toHaveLength(limits.leaseWaitersShownMax);
    await release(full, token);
  });

  it("[Y29] cannot say who it is by a header of our own", async () => {
    const before = await allOf(id);
    for (const key of [keys.other, null]) {
      const answer = await call("GET", of(id, "/lease/connect"), {
        key,
        headers: {
          upgrade: "websocket",
          "berth-socket-call": JSON.stringify({
            acquire: { holder: "me", ttlMs: 1000, waitMs: 0 },
            caller: { tenant: "local", rights: ["lease"] },
          }),
        },
      });
      expect(answer.status).toBe(key === null ? 401 : 404);
      await answer.text();
    }
    expect(await allOf(id)).toEqual(before);
  });
});
