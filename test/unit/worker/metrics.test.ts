/** What the operator sees: metrics with a key of their own, and the access log. */
import { createHash } from "node:crypto";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import type { Env } from "../../../src/config.ts";
import { createApp } from "../../../src/worker/app.ts";
import { generateSandboxId } from "../../../src/worker/auth/ids.ts";

const secret = "the secret of the metrics tests, which guards nothing";
const keys = { tenant: "berth_of_a_tenant", metrics: "berth_of_metrics", admin: "berth_of_admins" };
const digest = (key: string) => createHash("sha256").update(key).digest("hex");
const id = generateSandboxId(secret);

const isolation = {
  ...{ engine: "embedded", user: "own", files: "overlay", processes: "namespace", network: "none" },
  ...{ tree: "cgroup", memoryLimit: true, processLimit: true, diskLimit: false },
};
let disk = { freeBytes: 5000, floorBytes: 1000, isFull: false };
let engine: Server;
let engineUrl = "";

beforeAll(async () => {
  engine = createServer((_request, answer) => {
    const processes = [{ name: "workerd", residentBytes: 4096 }];
    const health = { containers: 3, containersMax: 50, isolation, missing: [], disk, processes };
    answer.end(JSON.stringify(health));
  });
  await new Promise<void>((resolve) => engine.listen(0, "127.0.0.1", resolve));
  engineUrl = `http://127.0.0.1:${(engine.address() as AddressInfo).port}`;
});
afterAll(() => engine.close());

function berth(accessLog = "off") {
  const env = {
    BERTH_API_KEYS: `acme:${digest(keys.tenant)}`,
    BERTH_ADMIN_KEYS: digest(keys.admin),
    BERTH_METRICS_KEYS: digest(keys.metrics),
    BERTH_SECRET: secret,
    BERTH_QUOTAS: "acme:sandboxes=9",
    BERTH_ACCESS_LOG: accessLog,
    BERTH_ENGINE_URL: engineUrl,
    BERTH_ENGINE_SECRET: "x".repeat(40),
    KEYS: { getByName: () => ({ tenants: async () => ["keyless"], fileHashes: async () => [] }) },
    DIRECTORY: {
      getByName: (tenant: string) => ({
        counts: async () => ({ ok: { states: { running: tenant === "acme" ? 2 : 1 }, total: 2 } }),
      }),
    },
    SANDBOX: {
      getByName: () => ({
        callVerb: async () => ({ status: 200, json: '{"exitCode":0}' }),
      }),
    },
  } as unknown as Env;
  const app = createApp();
  const context = { waitUntil: () => {}, passThroughOnException: () => {}, props: {} };
  return async (method: string, path: string, key?: string, body?: unknown) =>
    app.fetch(
      new Request(`http://berth.test${path}`, {
        method,
        headers: {
          ...(key === undefined ? {} : { authorization: `Bearer ${key}` }),
          "content-type": "application/json",
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      }),
      env,
      context as never,
    );
}

describe("metrics", () => {
  it("[O27] are shown to their own key and to administrators, and to nobody else", async () => {
    const ask = berth();
    for (const key of [undefined, "invented", keys.tenant])
      expect((await ask("GET", "/metrics", key)).status).toBe(401);
    for (const key of [keys.metrics, keys.admin])
      expect((await ask("GET", "/metrics", key)).status).toBe(200);
    expect((await ask("GET", "/v1/sandboxes", keys.metrics)).status).toBe(401);
  });

  it("[O27] are valid text of Prometheus with bounded labels, also for a tenant without keys", async () => {
    const ask = berth();
    await ask("GET", "/v1/counts", keys.tenant);
    await ask("GET", "/v1/counts", "invented");
    await ask("GET", `/v1/nowhere/${crypto.randomUUID()}`, keys.tenant);
    const response = await ask("GET", "/metrics", keys.metrics);
    expect(response.headers.get("content-type")).toMatch(/^text\/plain; version=0\.0\.4/);
    const text = await response.text();
    for (const line of text.trimEnd().split("\n")) {
      expect(line).toMatch(/^(# (HELP|TYPE) \w+ .+|\w+(\{(\w+="[^"]*",?)+\})? [\d.e+-]+)$/);
    }
    for (const expected of [
      'berth_sandboxes{tenant="acme",state="running"} 2',
      'berth_sandboxes{tenant="keyless",state="running"} 1',
      'berth_quota{tenant="acme",quota="sandboxes"} 9',
      'berth_call_seconds_bucket{verb="countSandboxes",le="+Inf"}',
      "berth_engine_up 1",
      "berth_containers 3",
      "berth_disk_free_bytes 5000",
      'berth_process_resident_bytes{process="workerd"} 4096',
    ]) {
      expect(text).toContain(expected);
    }
    expect(text).toMatch(/berth_calls_total\{verb="countSandboxes",status="2xx"\} \d+/);
    expect(text).toMatch(/berth_calls_total\{verb="countSandboxes",status="401"\} \d+/);
    expect(text).not.toContain("nowhere");
  });
});

describe("a full disk", () => {
  it("[O26] is 503 in /health with its bytes", async () => {
    disk = { freeBytes: 500, floorBytes: 1000, isFull: true };
    const response = await berth()("GET", "/health");
    disk = { freeBytes: 5000, floorBytes: 1000, isFull: false };
    expect(response.status).toBe(503);
    expect(await response.json()).toMatchObject({
      ...{ status: "disk_full", disk: { freeBytes: 500, floorBytes: 1000 } },
    });
  });
});

describe("the access log", () => {
  const lines = async (accessLog: string) => {
    const written: string[] = [];
    const log = vi.spyOn(console, "log").mockImplementation((line) => void written.push(line));
    const ask = berth(accessLog);
    const command = "echo visible";
    await ask("POST", `/v1/sandboxes/${id}/exec`, keys.tenant, {
      ...{ command, env: { PASSWORD: "hidden-value" }, stdin: "hidden-input" },
    });
    await ask("GET", `/v1/sandboxes/${id}?token=hidden-query`, "hidden-key");
    log.mockRestore();
    return written;
  };

  it("[O28] is off by default, and names caller, verb, sandbox and outcome", async () => {
    expect(await lines("off")).toEqual([]);
    const written = await lines("calls");
    expect(written.map((line) => JSON.parse(line))).toEqual([
      expect.objectContaining({
        ...{ call: "exec", status: 200, tenant: "acme", sandbox: id },
        ...{ key: digest(keys.tenant).slice(0, 8), requestId: expect.any(String) },
      }),
      expect.objectContaining({ call: "getSandbox", status: 401, sandbox: id }),
    ]);
    expect(written.join()).not.toMatch(/visible|hidden/);
  });

  it("[O28] holds the text of commands by choice, and never their environment, input, keys or queries", async () => {
    const written = await lines("commands");
    expect(JSON.parse(written[0] ?? "{}").command).toBe("echo visible");
    expect(written.join()).not.toContain("hidden");
  });
});
