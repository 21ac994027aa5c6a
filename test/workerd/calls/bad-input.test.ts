/** Bad input that needs the clock or the inside of an object. See test/security/catalogue for the rest. */
import { describe, expect, it } from "vitest";
import { limits } from "../../../src/protocol/limits.ts";
import * as api from "../api.ts";
import { call, createSandbox, json, keys, pathOf } from "../calls.ts";

const lease = async (id: string, body: Record<string, unknown> = {}) =>
  String((await api.request("POST", id, "/lease", body)).token);
const release = (id: string, token: string) => api.releaseLease(id, token);

/** The visible state of a sandbox, and the requests to its container. */
async function allOf(id: string) {
  const responses = await Promise.all(
    ["", "/lease", "/metadata", "/events?limit=1000"].map((tail) =>
      json(call("GET", pathOf(id, tail))),
    ),
  );
  const { ran, starts, calls } = await api.facts(id);
  return { responses, ran, starts, calls };
}

describe("bad input", () => {
  it("[Y29] for a destroyed sandbox is still refused as such, and good input fails with 410", async () => {
    const destroyed = await createSandbox({ metadata: { a: "1" } });
    const token = await lease(destroyed);
    await api.request("DELETE", destroyed, "?force=true");
    const before = await allOf(destroyed);
    const headers = { "berth-lease": token };
    const status = async (method: string, tail: string, body?: unknown) => {
      const answer = await call(method, pathOf(destroyed, tail), { body, headers });
      await answer.text();
      return answer.status;
    };
    expect(await status("PATCH", "/metadata", { "a b": "1" })).toBe(400);
    expect(await status("PATCH", "/metadata", { a: "2" })).toBe(410);
    expect(await status("POST", "/exec", { command: "true" })).toBe(410);
    expect(await status("POST", "/lease", {})).toBe(410);
    expect(await status("PUT", "/lease", {})).toBe(410);
    expect(await status("DELETE", "/lease")).toBe(410);
    expect(await allOf(destroyed)).toEqual(before);
  });

  it("[Q4] [Y29] is the 1,001st waiter, and the 17th of one holder", async () => {
    const full = await createSandbox();
    const token = await lease(full, { holder: "the holder", ttlMs: limits.leaseTtlMaxMs });
    const waits = (holder: string) =>
      call("POST", pathOf(full, "/lease"), { body: { holder, queueMs: 60_000 } });
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
    const state = await api.request("GET", full, "/lease");
    expect(state.waiterCount).toBe(limits.leaseWaitersMax);
    expect(state.waiters).toHaveLength(limits.leaseWaitersShownMax);
    await release(full, token);
  });

  it("[Y29] cannot pass an identity in an internal header", async () => {
    const id = await createSandbox({ metadata: { a: "1", b: "2", c: "3" } });
    await lease(id, { holder: "the holder", ttlMs: limits.leaseTtlMaxMs });
    const before = await allOf(id);
    for (const key of [keys.other, null]) {
      const answer = await call("GET", pathOf(id, "/lease/connect"), {
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
