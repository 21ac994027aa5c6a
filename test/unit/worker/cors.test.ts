import { createHash } from "node:crypto";
import { describe, expect, it } from "vitest";
import type { Env } from "../../../src/config.ts";
import { createApp } from "../../../src/worker/app.ts";
import { generateSandboxId } from "../../../src/worker/auth/ids.ts";

const page = "https://app.test";
const key = "berth_of_the_origin_tests";
const secret = "the secret of the origin tests, which guards nothing";
const id = generateSandboxId(secret);
const visited = `/p/8000-${id}-${"a".repeat(26)}/`;

/** A Berth whose sandboxes all give this one answer; how many were addressed for it. */
function berth(
  answer = () => new Response("from the sandbox"),
  origins = `${page} https://b.test`,
) {
  const digest = createHash("sha256").update(key).digest("hex");
  let addressed = 0;
  const env = {
    BERTH_API_KEYS: `local:${digest}`,
    BERTH_SECRET: secret,
    BERTH_ORIGINS: origins,
    SANDBOX: {
      getByName: () => {
        addressed++;
        return { fetch: async () => answer(), exec: async () => answer() };
      },
    },
  } as unknown as Env;
  const app = createApp();
  return {
    addressed: () => addressed,
    ask: async (method: string, path: string, headers: Record<string, string> = {}) =>
      app.fetch(new Request(`http://berth.test${path}`, { method, headers }), env),
  };
}

const bearer = { authorization: `Bearer ${key}` };
const asks = (origin: string) => ({
  origin,
  "access-control-request-method": "PUT",
  "access-control-request-headers": "authorization,berth-lease",
});
const list = (response: Response, name: string) =>
  (response.headers.get(name) ?? "").split(",").sort();
/** What is said to a browser about pages, and to nobody else. */
const said = ({ headers }: Response) =>
  [...headers.keys()].filter((name) => name.startsWith("access-control-"));

describe("pages of other origins", () => {
  it("[W11] may send preflight requests without a key, which address no object", async () => {
    const { ask, addressed } = berth();
    const response = await ask("OPTIONS", `/v1/sandboxes/${id}/files?path=a`, asks(page));
    expect(response.status).toBe(204);
    expect(await response.text()).toBe("");
    expect(response.headers.get("access-control-allow-origin")).toBe(page);
    expect(response.headers.get("vary")).toContain("Origin");
    expect(response.headers.has("access-control-allow-credentials")).toBe(false);
    expect(list(response, "access-control-allow-methods")).toEqual([
      ...["DELETE", "GET", "PATCH", "POST", "PUT"],
    ]);
    expect(list(response, "access-control-allow-headers")).toEqual([
      ...["accept", "authorization", "berth-lease", "berth-request-id", "berth-wait-ms"],
      ...["content-type", "idempotency-key", "if-match", "if-none-match", "if-range"],
      ...["last-event-id", "range"],
    ]);
    expect(addressed()).toBe(0);
  });

  it("[W11] can read responses, errors and streams with their headers", async () => {
    const stream = () =>
      new Response(new Blob(["a part"]).stream(), { status: 206, headers: { etag: '"1"' } });
    const { ask, addressed } = berth(stream);
    const seen: Record<string, number> = {};
    for (const [method, path, headers] of [
      ["GET", "/health", {}],
      ["GET", `/v1/sandboxes/${id}/files?path=a`, bearer],
      ["GET", `/v1/sandboxes/${id}/files?path=a`, {}],
      ["GET", `/v1/sandboxes/${id}/files`, bearer],
      ["GET", "/v1/nowhere", bearer],
      ["GET", `/v1/sandboxes/${id}/exec`, bearer],
    ] as const) {
      const response = await ask(method, path, { origin: "https://b.test", ...headers });
      seen[`${path} ${"authorization" in headers}`] = response.status;
      expect(response.headers.get("access-control-allow-origin"), path).toBe("https://b.test");
      expect(response.headers.get("vary"), path).toBe("Origin");
      expect(response.headers.has("access-control-allow-credentials")).toBe(false);
      expect(list(response, "access-control-expose-headers")).toEqual(
        expect.arrayContaining([
          ...["allow", "berth-offset", "berth-request-id", "content-disposition"],
          ...["content-range", "etag", "location", "retry-after"],
        ]),
      );
      if (response.status === 206) expect(response.headers.get("etag")).toBe('"1"');
      expect(await response.text()).toContain(response.status === 206 ? "a part" : "{");
    }
    expect(Object.values(seen)).toEqual([200, 206, 401, 400, 404, 405]);
    expect(addressed()).toBeGreaterThan(0);
  });

  it("[W12] are allowed only if they are listed, also behind a shared cache", async () => {
    const { ask } = berth();
    const listed = `/v1/sandboxes/${id}/files?path=a`;
    for (const origin of ["https://evil.test", "null", `${page}.evil.test`, "http://app.test"]) {
      const response = await ask("GET", listed, { ...bearer, origin });
      expect(response.status).toBe(200);
      expect(said(response)).toEqual([]);
      expect(response.headers.get("vary")).toBe("Origin");
      expect((await ask("OPTIONS", listed, asks(origin))).status).toBe(401);
      const known = await ask("OPTIONS", listed, { ...asks(origin), ...bearer });
      expect(known.status).toBe(405);
      expect(known.headers.get("allow")).toBe("GET, PUT, DELETE");
      expect(said(known)).toEqual([]);
    }
    const program = await ask("GET", listed, bearer);
    expect(said(program)).toEqual([]);
    expect(program.headers.get("vary")).toBe("Origin");
  });

  it("[W12] get no CORS headers if no origin is listed", async () => {
    const { ask } = berth(undefined, "");
    const response = await ask("GET", "/health", { origin: page });
    expect(response.status).toBe(200);
    expect(said(response)).toEqual([]);
    expect(response.headers.has("vary")).toBe(false);
  });

  it("[W12] get the CORS headers of the sandbox's own server on its port", async () => {
    const own = { "access-control-allow-origin": "https://of-the-server.test" };
    const { ask, addressed } = berth(() => new Response("from the sandbox", { headers: own }));
    for (const method of ["OPTIONS", "GET"]) {
      const response = await ask(method, visited, asks(page));
      expect(await response.text()).toBe("from the sandbox");
      expect(said(response)).toEqual(["access-control-allow-origin"]);
      expect(response.headers.get("access-control-allow-origin")).toBe(
        "https://of-the-server.test",
      );
    }
    expect(addressed()).toBe(2);
  });
});
