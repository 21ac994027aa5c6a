import { evictDurableObject } from "cloudflare:test";
import { describe, expect, it } from "vitest";
import { type VerbRow, verbs } from "../../../src/protocol/verbs.ts";
import * as api from "../api.ts";
import { call, createSandbox, json, pathOf, stubOf } from "../calls.ts";
import { sample, samplePath } from "../samples.ts";

const ofOne = Object.entries(verbs as Record<string, VerbRow>).filter(([, { path }]) =>
  path.includes(":id"),
);

describe("the lease check", () => {
  it("[Y20] covers each route, some gated and some not", () => {
    expect(ofOne.filter(([, { gated }]) => gated).length).toBeGreaterThanOrEqual(3);
    expect(ofOne.filter(([, { gated }]) => !gated).length).toBeGreaterThanOrEqual(12);
  });

  it.each(ofOne)("[Y20] refuses exactly the gated calls: %s", async (name, route) => {
    const id = await createSandbox();
    const held = await api.acquireLease(id, { holder: "the holder" });
    const ask = (headers: Record<string, string> = {}) => {
      const { headers: own, ...rest } = sample(name);
      return call(route.method, samplePath(id, route), {
        ...rest,
        headers: { ...own, ...headers },
      });
    };
    const answer = await ask();
    if (route.gated !== true) {
      answer.webSocket?.accept();
      answer.webSocket?.close();
      // Acquiring a lease is not gated, but there is only one.
      expect(answer.status === 423).toBe(name === "acquireLease");
      return await answer.body?.cancel();
    }
    expect(answer.status).toBe(423);
    expect(answer.headers.get("retry-after")).toBe("1");
    expect(await json(answer)).toMatchObject({
      error: {
        code: "lease_held",
        holder: "the holder",
        acquiredAt: held.acquiredAt,
        expiresAt: held.expiresAt,
        waiting: 0,
        retryable: true,
      },
    });
    const wrong = await ask({ "berth-lease": "somebody-elses-token-of-a-lease" });
    expect(await json(wrong)).toMatchObject({ error: { code: "lease_lost", reason: "unknown" } });
    const right = await ask(api.leaseHeader(held.token));
    // After the lease check, the unknown target is not found.
    const ok = 201 in route.responses ? 201 : 200;
    expect(right.status).toBe(/:id\/.*:/.test(route.path) ? 404 : ok);
    await right.text();
  });

  it("[Y20] responds 201 with a lease, 202 with a place in the queue, 200 afterwards", async () => {
    const id = await createSandbox();
    const first = await call("POST", pathOf(id, "/lease"), { body: { holder: "one" } });
    expect(first.status).toBe(201);
    const { token } = await json(first);
    const second = await call("POST", pathOf(id, "/lease"), { body: { queueMs: 60_000 } });
    expect(second.status).toBe(202);
    expect(await json(second)).toEqual({
      ticket: expect.stringMatching(/^[a-z0-9]{32}$/),
      position: 0,
      pollWithinMs: 30_000,
    });
    const headers = api.leaseHeader(token);
    expect((await call("PUT", pathOf(id, "/lease"), { body: {}, headers })).status).toBe(200);
    expect((await call("DELETE", pathOf(id, "/lease"), { headers })).status).toBe(200);
  });

  it("[Y17] keeps the fence growing over evictions, as the agent sees it", async () => {
    const id = await createSandbox();
    let last = 0;
    for (let n = 0; n < 5; n++) {
      const { token, fence } = await api.acquireLease(id);
      expect(fence).toBeGreaterThan(last);
      last = fence;
      const headers = api.leaseHeader(token);
      const ran = await json(
        call("POST", pathOf(id, "/exec"), { body: { command: "true" }, headers }),
      );
      expect(ran.exitCode).toBe(0);
      await json(call("DELETE", pathOf(id, "/lease"), { headers }));
      await evictDurableObject(stubOf(id));
    }
  });
});
