import { listDurableObjectIds, runDurableObjectAlarm } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { describe, expect, it } from "vitest";
import { limits } from "../../../src/protocol/limits.ts";
import { rights } from "../../../src/protocol/rights.ts";
import { type VerbRow, verbs } from "../../../src/protocol/verbs.ts";
import * as api from "../api.ts";
import { call, createSandbox, json, keys, pathOf } from "../calls.ts";

let drawn = 0;
const newName = () => `plan-${drawn++}`;
const of = (name: string, tail = "") => `/v1/plans/${name}${tail}`;
const put = (path: string, body: object = {}) => call("PUT", path, { body });
const post = (path: string, body: object = {}, headers: Record<string, string> = {}) =>
  call("POST", path, { body, headers });
const planRoutes = (Object.values(verbs) as VerbRow[]).filter(({ path }) =>
  path.startsWith("/v1/plans"),
);

describe("the routes of plans", () => {
  it("[PL48] have statuses for created, found and in progress", async () => {
    const name = newName();
    expect((await put(of(name))).status).toBe(201);
    expect((await put(of(name))).status).toBe(200);
    const id = await createSandbox();
    expect((await put(of(name, "/sandboxes/a"), { sandboxId: id })).status).toBe(201);
    expect((await put(of(name, "/sandboxes/a"), { sandboxId: id })).status).toBe(200);
    const done = await post(of(name, "/commit"), { allowEmpty: true });
    expect([done.status, (await json(done)).outcome]).toEqual([200, "committed"]);
    const lease = await api.acquireLease(id);
    const held = await post(of(name, "/commit"), { waitMs: 0, allowEmpty: true });
    expect(held.status).toBe(423);
    expect(held.headers.get("retry-after")).toBe("1");
    expect(await json(held)).toMatchObject({ error: { code: "lease_held", key: "a", commit: 2 } });
    const waiting = post(of(name, "/commit"), { waitMs: 20_000, allowEmpty: true });
    const underWay = await pending(of(name, "/commits/3"));
    expect(await json(underWay)).toMatchObject({ outcome: "pending", commit: 3 });
    const busy = await call("DELETE", of(name, "/sandboxes/a"));
    expect(busy.status).toBe(409);
    expect(await json(busy)).toMatchObject({ error: { code: "plan_busy", commit: 3 } });
    expect((await json(call("GET", of(name)))).running).toMatchObject({ commit: 3 });
    const headers = api.leaseHeader(lease.token);
    await json(call("DELETE", pathOf(id, "/lease"), { headers }));
    expect(await json(waiting)).toMatchObject({ outcome: "committed", commit: 3 });
    expect((await call("GET", of(name, "/commits/3?waitMs=25000"))).status).toBe(200);
    expect((await call("GET", of(name, "/commits/4"))).status).toBe(404);
    const nothing = await post(of(name, "/commit"));
    expect([nothing.status, (await json(nothing)).error.code]).toEqual([409, "nothing_to_commit"]);
  });

  it("[PL48] need a key: a token of one sandbox is refused", async () => {
    const id = await createSandbox({ start: false });
    const { token } = await json(post(pathOf(id, "/tokens"), { rights }));
    expect(planRoutes.length).toBeGreaterThanOrEqual(10);
    for (const { method, path } of planRoutes) {
      const concrete = path.replace(":plan", "p").replace(":key", "k").replace(":n", "1");
      const body = method === "GET" || method === "DELETE" ? undefined : {};
      const answer = await call(method, concrete, { key: String(token), body });
      expect([answer.status, (await json(answer)).error.code]).toEqual([403, "forbidden"]);
    }
  });

  it("[PL41] address no object for an unknown name or one of another tenant", async () => {
    const name = newName();
    await put(of(name));
    const before = await listDurableObjectIds(env.PLAN);
    expect(before.length).toBeGreaterThan(0);
    const made = await listDurableObjectIds(env.SANDBOX);
    for (const { method, path } of planRoutes) {
      if (!path.includes(":plan") || (method === "PUT" && path.endsWith(":plan"))) continue;
      for (const [plan, key] of [
        [newName(), keys.local],
        [name, keys.other],
      ] as const) {
        const concrete = path.replace(":plan", plan).replace(":key", "k").replace(":n", "1");
        const isMember = path.endsWith(":key");
        const body =
          method === "GET" || method === "DELETE"
            ? undefined
            : isMember
              ? { create: { start: false } }
              : {};
        const answer = await call(method, concrete, { key, body });
        expect([concrete, answer.status]).toEqual([concrete, 404]);
        await answer.text();
      }
    }
    expect(await listDurableObjectIds(env.PLAN)).toHaveLength(before.length);
    expect(await listDurableObjectIds(env.SANDBOX)).toHaveLength(made.length);
  });

  it("[PL14] continue after an object was lost: its alarm aborts the run", async () => {
    const name = newName();
    await put(of(name));
    const [id, other] = [await createSandbox(), await createSandbox()];
    await put(of(name, "/sandboxes/a"), { sandboxId: id });
    await put(of(name, "/sandboxes/b"), { sandboxId: other });
    await call("POST", pathOf(id, "/lease"), { body: { holder: "somebody" } });
    const lost = post(of(name, "/commit"), { waitMs: 25_000, allowEmpty: true });
    lost.catch(() => undefined);
    await pending(of(name, "/commits/1"));
    // A stub of a lost object cannot be used any more.
    const stub = () => env.PLAN.getByName(`local/${name}`);
    await api.crash(stub());
    await runDurableObjectAlarm(stub());
    const run = await json(call("GET", of(name, "/commits/1?waitMs=25000")));
    expect(run).toMatchObject({ outcome: "aborted", error: { code: "unavailable" } });
    expect((await json(call("GET", of(name)))).running).toBeUndefined();
    expect((await api.request("GET", other, "/lease")).state).toBe("free");
    const { holder, waiterCount } = await api.getLease(id);
    expect([holder, waiterCount]).toEqual(["somebody", 0]);
    await (await lost.catch(() => undefined))?.text();
  });

  it("[PL49] are limited in number", async () => {
    const directory = env.DIRECTORY.getByName("other");
    await api.runSql(
      directory,
      `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
       INSERT INTO plan SELECT 'full-' || i, i FROM n`,
      limits.plansMax,
    );
    const more = await call("PUT", of("one-more"), { key: keys.other, body: {} });
    expect(more.status).toBe(429);
    expect(await json(more)).toMatchObject({
      error: { code: "too_many", plansMax: limits.plansMax },
    });
    expect((await call("PUT", of("full-7"), { key: keys.other, body: {} })).status).toBe(200);
    const { plans, nextCursor } = await json(call("GET", "/v1/plans?limit=3", { key: keys.other }));
    expect(plans.map(({ name }: { name: string }) => name)).toEqual([
      "full-1",
      "full-10",
      "full-100",
    ]);
    expect(nextCursor).toBe("full-100");
    await api.runSql(directory, "DELETE FROM plan");
  });
});

/** The response, once there is such a run. */
async function pending(path: string): Promise<Response> {
  for (let n = 0; n < 500; n++) {
    const answer = await call("GET", path);
    if (answer.status === 202) return answer;
    await answer.text();
  }
  throw new Error("it never began");
}
