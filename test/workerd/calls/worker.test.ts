import { listDurableObjectIds } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { describe, expect, it } from "vitest";
import { errors } from "../../../src/protocol/errors.ts";
import { limits } from "../../../src/protocol/limits.ts";
import { type VerbRow, verbs } from "../../../src/protocol/verbs.ts";
import * as api from "../api.ts";
import { call, createSandbox, fetchWorker, json, keys, pathOf } from "../calls.ts";
import { samplePath } from "../samples.ts";

const concrete = (path: string) => samplePath("k3v9q2m7x1c5b8n4tq0w8e2r", { path });

describe("the Worker", () => {
  it.each([
    ["no key", null, {}],
    ["another scheme", null, { authorization: "Basic abc" }],
    ["an empty key", null, { authorization: "Bearer " }],
    ["a key with a space", null, { authorization: `Bearer ${keys.local} x` }],
    ["an unknown key", "berth_local_nobody", {}],
    ["a key of 10 kB", "k".repeat(10_000), {}],
  ])("[W1] answers 401 to %s, on every route but the open ones", async (_what, key, headers) => {
    for (const route of Object.values(verbs) as VerbRow[]) {
      const response = await call(route.method, concrete(route.path), { key, headers });
      // Signing in needs a ticket or a key in its body.
      if (route === verbs.signIn) expect(response.status).toBe(400);
      else if (route.right === undefined) expect(response.status).toBe(200);
      else {
        expect(response.status).toBe(401);
        expect(response.headers.get("www-authenticate")).toBe("Bearer");
        expect(await json(response)).toMatchObject({ error: { code: "unauthenticated" } });
      }
    }
  });

  it("[W2] responds 404 to an unknown id without addressing an object", async () => {
    const real = await createSandbox();
    const before = await listDurableObjectIds(env.SANDBOX);
    const flipped = real.slice(0, -1) + (real.endsWith("a") ? "b" : "a");
    const shifted = `${real.startsWith("a") ? "b" : "a"}${real.slice(1)}`;
    const strange = [
      "x",
      "%00",
      "..%2f..",
      real.toUpperCase(),
      `${real}0`,
      "%F0%9F%98%80",
      "a".repeat(300),
    ];
    for (const id of [flipped, shifted, ...strange]) {
      for (const [method, tail] of [
        ["GET", ""],
        ["DELETE", ""],
        ["POST", "/exec"],
      ] as const) {
        const body = method === "POST" ? { command: "true" } : undefined;
        const response = await call(method, `/v1/sandboxes/${id}${tail}`, { body });
        expect(response.status, `${method} ${id}${tail}`).toBe(404);
      }
    }
    expect(await listDurableObjectIds(env.SANDBOX)).toHaveLength(before.length);
  });

  it("[W3] responds with the same bytes for a foreign sandbox as for an unknown one", async () => {
    const id = await createSandbox();
    const invented = `${id.startsWith("a") ? "b" : "a"}${id.slice(1)}`;
    const headers = { "berth-request-id": "same" };
    for (const [method, tail] of [
      ["GET", ""],
      ["DELETE", ""],
      ["POST", "/exec"],
    ] as const) {
      const body = method === "POST" ? { command: "true" } : undefined;
      const responseOf = async (sandbox: string) => {
        const path = `/v1/sandboxes/${sandbox}${tail}`;
        const response = await call(method, path, { key: keys.other, headers, body });
        return [response.status, [...response.headers], await response.text()];
      };
      expect(await responseOf(id)).toEqual(await responseOf(invented));
    }
    expect(await api.get(id)).toMatchObject({ state: "running" });
  });

  it.each([
    [{ command: "true", colour: "red" }, "colour"],
    [{ command: "true", env: { "1A": "x" } }, "env.1A"],
    [{ command: "true", env: { A: "x\0" } }, "env.A"],
    [{ command: "true", env: { A: 1 } }, "env.A"],
    [{ command: "true", argv: ["true"] }, "command"],
    [{}, "command"],
    [{ command: "" }, "command"],
    [{ command: "x\0y" }, "command"],
    [{ command: "\ud800" }, "command"],
    [{ command: "x".repeat(limits.argBytesMax + 1) }, "command"],
    [{ argv: [] }, "argv"],
    [{ argv: [""] }, "argv"],
    [{ argv: ["ls", 1] }, "argv.1"],
    [{ argv: "ls -l" }, "argv"],
    [{ command: "true", cwd: "" }, "cwd"],
    [{ command: "true", cwd: `/${"x".repeat(limits.pathBytesMax)}` }, "cwd"],
    [{ command: "true", timeoutMs: 0 }, "timeoutMs"],
    [{ command: "true", timeoutMs: 1.5 }, "timeoutMs"],
    [{ command: "true", timeoutMs: limits.execTimeoutMaxMs + 1 }, "timeoutMs"],
    [{ command: "true", timeoutMs: "60" }, "timeoutMs"],
    [{ command: "true", maxOutputBytes: limits.execOutputMaxBytes + 1 }, "maxOutputBytes"],
    [{ command: "true", encoding: "latin1" }, "encoding"],
    [{ command: "cat", stdin: "%", encoding: "base64" }, "stdin"],
    [{ command: "cat", stdin: "x".repeat(limits.stdinBytesMax + 1) }, "stdin"],
    ['{"command":"true","env":{"__proto__":"x"}}', "__proto__"],
    ["[]", "body"],
    ["null", "body"],
    ['"x"', "body"],
  ])("[W4] names the field of a bad call: case %#", async (body, field) => {
    const id = await createSandbox();
    const response = await call("POST", pathOf(id, "/exec"), { body });
    expect(response.status).toBe(400);
    const { error } = await json(response);
    expect(error).toMatchObject({ code: "bad_request", field });
    expect(error.message).toContain(field);
  });

  it("[W5] accepts JSON of a bounded size and nothing else", async () => {
    const id = await createSandbox();
    const path = pathOf(id, "/exec");
    const status = async (body: string, headers = {}) =>
      (await call("POST", path, { body, headers })).status;
    const good = '{"command":"true"}';
    expect(await status(good, { "content-type": "application/json; charset=utf-8" })).toBe(200);
    expect(await status(good, { "content-type": "text/plain" })).toBe(415);
    expect(await status(good, { "content-encoding": "gzip" })).toBe(415);
    expect(await status('{"command":')).toBe(400);
    expect(await status(`${"[".repeat(10_000)}${"]".repeat(10_000)}`)).toBe(400);
    expect(await status(`{"command":"${" ".repeat(limits.bodyBytesMax)}"}`)).toBe(413);
    for (const nothing of [undefined, {}]) {
      const ticket = await call("POST", pathOf(id, "/tickets"), { body: nothing });
      expect(ticket.status).toBe(201);
    }
    const more = await call("POST", pathOf(id, "/tickets"), { body: { ttlMs: 5 } });
    expect(more.status).toBe(400);
    expect((await json(more)).error).toMatchObject({ code: "bad_request", field: "ttlMs" });
    const latin1 = new Request(`http://berth.test${path}`, {
      method: "POST",
      headers: { authorization: `Bearer ${keys.local}`, "content-type": "application/json" },
      body: new Uint8Array([0x22, 0xff, 0x22]),
    });
    expect(await json(fetchWorker(latin1))).toMatchObject({ error: { code: "bad_json" } });
  });

  it("[W6] responds 404 to an unknown route and 405 with Allow to a wrong method", async () => {
    expect((await call("GET", "/v1/nothing")).status).toBe(404);
    expect((await call("GET", "/nothing", { key: null })).status).toBe(404);
    const wrong = await call("PUT", "/v1/sandboxes/k3v9q2m7x1c5b8n4tq0w8e2r");
    expect(wrong.status).toBe(405);
    expect(wrong.headers.get("allow")).toBe("GET, DELETE");
    expect((await call("GET", "/v1/sandboxes/k3v9q2m7x1c5b8n4tq0w8e2r/exec")).status).toBe(405);
  });

  it("[W7] reports every failure in one form, with the caller's request id or a generated one", async () => {
    const responseOf = await call("GET", "/v1/nothing", {
      headers: { "berth-request-id": "mine-1" },
    });
    expect(responseOf.headers.get("berth-request-id")).toBe("mine-1");
    expect(await json(responseOf)).toMatchObject({
      error: { code: "not_found", message: expect.any(String), retryable: false },
      requestId: "mine-1",
    });
    const generated = await call("GET", "/v1/nothing", { headers: { "berth-request-id": "a b" } });
    expect((await json(generated)).requestId).toMatch(/^[0-9a-f-]{36}$/);
    for (const { status } of Object.values(errors)) expect(status).toBeGreaterThanOrEqual(400);
  });

  it("[W9] serves its health and its page without a key and without an object", async () => {
    const before = await listDurableObjectIds(env.SANDBOX);
    expect(await json(call("GET", "/health", { key: null }))).toMatchObject({ status: "ok" });
    const page = await call("GET", "/", { key: null });
    expect(page.headers.get("content-type")).toContain("text/html");
    expect(await page.text()).toContain("Berth");
    expect(await listDurableObjectIds(env.SANDBOX)).toHaveLength(before.length);
  });
});
