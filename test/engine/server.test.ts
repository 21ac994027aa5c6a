/** The engine's HTTP server: authentication, validation and refusals. */
import { describe, expect, it } from "vitest";
import {
  identities,
  newData,
  newId,
  newStart,
  removeData,
  sharedEngine,
  startEngine,
} from "./test-engine.ts";

type ErrorResponse = { error: { code: string; message: string; field?: string } };

describe("the engine's server", () => {
  const [as = "not root"] = identities();
  const engine = sharedEngine(as, { ranSandboxes: false });

  const request = (method: string, path: string, body?: unknown, secret = engine.secret) =>
    fetch(`${engine.baseUrl}${path}`, {
      method,
      headers: secret === "" ? {} : { authorization: `Bearer ${secret}` },
      ...(body === undefined
        ? {}
        : { body: typeof body === "string" ? body : JSON.stringify(body) }),
    });

  it("[R31] requires its secret on every path, and starts nothing without it", async () => {
    const start = `/v1/containers/${newId()}/start`;
    for (const wrong of ["", "x", `${engine.secret}x`, engine.secret.toUpperCase()]) {
      for (const path of ["/v1/health", start, "/nowhere"]) {
        const response = await request(path === start ? "POST" : "GET", path, undefined, wrong);
        expect(response.status).toBe(401);
        expect(((await response.json()) as ErrorResponse).error.code).toBe("unauthenticated");
      }
    }
    expect(engine.processes()).toEqual([]);
    expect((await request("GET", "/v1/health")).status).toBe(200);
  });

  it("[R32] refuses an invalid request with the name of the field, and starts nothing", async () => {
    const start = (body: unknown, id = newId()) =>
      request("POST", `/v1/containers/${id}/start`, body);
    const call = newStart();
    const container = `/v1/containers/${newId()}`;
    const cases: [Response, number, string | undefined][] = [
      [await start({ ...call, startId: "UPPER" }), 400, "body.startId"],
      [await start({ ...call, secret: "short" }), 400, "body.secret"],
      [await start({ ...call, network: {} }), 400, "body.network.internet"],
      [await start({ ...call, env: { "BAD NAME": "x" } }), 400, "body.env.BAD NAME"],
      [await start(call, "..%2f..%2fetc"), 400, "id"],
      [await start("{"), 400, undefined],
      [await request("POST", `${container}/destroy`, { files: "some" }), 400, "body.files"],
      [await request("POST", `${container}/signal`, { signal: 99 }), 400, "body.signal"],
      [await request("GET", `${container}/monitor`), 400, "query.startId"],
      [await request("DELETE", "/v1/snapshots/..%2f..%2ftrees"), 400, "id"],
      [await request("GET", `${container}/start`), 405, undefined],
      [await request("GET", "/v1/nowhere"), 404, undefined],
    ];
    for (const [response, status, field] of cases) {
      const { error } = (await response.json()) as ErrorResponse;
      expect([response.status, error.field], response.url).toEqual([status, field]);
    }
    expect(engine.processes()).toEqual([]);
  });

  it("[R33] reports an invalid setting in one line with the name of the variable", async () => {
    const wrong: [Record<string, string>, string][] = [
      [{ BERTH_ENGINE_SECRET: "short" }, "BERTH_ENGINE_SECRET: must be at least 32 characters"],
      [{ BERTH_ENGINE_DATA: "relative" }, "BERTH_ENGINE_DATA: must be an absolute path"],
      [{ BERTH_ENGINE_NETWORK: "bridge" }, "BERTH_ENGINE_NETWORK"],
      [{ BERTH_ENGINE_SUBNET: "10.0.0.0" }, "BERTH_ENGINE_SUBNET"],
      [{ BERTH_ENGINE_AGENT: "/nowhere/agent" }, "BERTH_ENGINE_AGENT: There is no agent at"],
      [{ BERTH_ENGINE_CONTAINERS_MAX: "9999" }, "BERTH_ENGINE_CONTAINERS_MAX"],
    ];
    for (const [env, words] of wrong) {
      const other = newData(as);
      await expect(startEngine(as, { data: other, env }), words).rejects.toThrow(words);
      removeData(other);
    }
  });
});
