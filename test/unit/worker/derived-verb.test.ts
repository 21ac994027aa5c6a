/** A verb is one row and one function: everything else about it is derived. This row is in no table. */
import { Hono } from "hono";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import type { HttpClient, HttpRequest } from "../../../src/client/http/request.ts";
import { derivedMethods } from "../../../src/client/verbs.ts";
import { toAgentRequest } from "../../../src/objects/sandbox/calls/proxy.ts";
import { flagSchema } from "../../../src/protocol/fields/scalar.ts";
import type { Caller } from "../../../src/protocol/rights.ts";
import { sandboxPath } from "../../../src/protocol/verbs/row.ts";
import type { Verb } from "../../../src/protocol/verbs/types.ts";
import type { VerbRow } from "../../../src/protocol/verbs.ts";
import { generateSandboxId } from "../../../src/worker/auth/ids.ts";
import type { ApiEnv, Handler } from "../../../src/worker/http/context.ts";
import { openApiOf } from "../../../src/worker/http/openapi.ts";
import { verbHandler } from "../../../src/worker/http/verb-handler.ts";
import { sandboxMethod } from "../../../src/worker/rpc.ts";

const rows = {
  echo: {
    method: "POST",
    path: `${sandboxPath}/processes/:process/echo`,
    summary: "Return a text",
    example: { query: { upper: "1" }, body: { text: "hello" } },
    right: "exec",
    gated: true,
    agent: true,
    query: z.strictObject({ upper: flagSchema.default(false) }),
    body: z.strictObject({ text: z.string() }).meta({ id: "EchoCall" }),
    responses: { 200: { schema: z.strictObject({ text: z.string() }), meaning: "The text." } },
  },
} as const satisfies Record<string, VerbRow>;

type Echo = Verb<typeof rows.echo>;

const secret = "a secret that is long enough for a test";
const id = generateSandboxId(secret);
const caller: Caller = { tenant: "local", rights: ["exec"] };

/** An object that records how it is called. */
function objectThatRecords() {
  const calls: unknown[][] = [];
  const callVerb = async (...call: unknown[]) => {
    calls.push(call);
    return { status: 200, json: '{"text":"HELLO"}' };
  };
  const env = { BERTH_SECRET: secret, SANDBOX: { getByName: () => ({ callVerb }) } } as never;
  return { env, calls };
}

const served = (gated: object) => [
  "echo",
  { ...caller, rights: [] },
  { gated, target: "p1", query: { upper: true }, body: { text: "hello" } },
  expect.any(String),
];

describe("a verb that is only a row", () => {
  it("[VB1] has a typed method: path parameter, body, options", () => {
    const echo: Echo = async (_process, { text }, { upper = false } = {}) => ({
      text: upper ? text.toUpperCase() : text,
    });
    // @ts-expect-error the text is missing
    void (() => echo("p1", {}));
    // @ts-expect-error there is no such option
    void (() => echo("p1", { text: "hello" }, { colour: "red" }));
    // @ts-expect-error the result is an object
    const wrong: Echo = async () => "hello";
    expect([echo, wrong]).toHaveLength(2);
  });

  it("[VB2] is served over HTTP, with checked fields", async () => {
    const { env, calls } = objectThatRecords();
    const app = new Hono<ApiEnv>();
    app.use(async (c, next) => {
      c.set("caller", caller);
      c.set("requestId", "request-1");
      await next();
    });
    const handler = verbHandler("echo" as never, rows.echo);
    app.post(rows.echo.path, (c) => handler(c as unknown as Parameters<Handler>[0]));
    const send = (query: string, body: object) =>
      app.request(
        `http://berth/v1/sandboxes/${id}/processes/p1/echo${query}`,
        {
          method: "POST",
          body: JSON.stringify(body),
          headers: { "content-type": "application/json", "berth-lease": "token" },
        },
        env,
      );
    const response = await send("?upper=1&wake=0", { text: "hello" });
    expect([response.status, await response.json()]).toEqual([200, { text: "HELLO" }]);
    expect(calls).toEqual([served({ token: "token", waitMs: undefined, mayWake: false })]);
    expect((await send("?upper=yes", { text: "hello" })).status).toBe(500);
    expect((await send("", { text: 5 })).status).toBe(500);
    expect(calls).toHaveLength(1);
  });

  it("[VB3] is an RPC method for other Workers, with the right of the row", async () => {
    const { env, calls } = objectThatRecords();
    const echo = sandboxMethod("echo" as never, rows.echo);
    const binding = { env, caller, id, url: "http://berth" };
    const options = { upper: true, lease: "token" };
    const result = await echo.call({ binding }, "p1", { text: "hello" }, options);
    expect(result).toEqual({ text: "HELLO" });
    expect(calls).toEqual([served({ token: "token", waitMs: undefined, mayWake: true })]);
    const reader = { ...binding, caller: { ...caller, rights: ["read" as const] } };
    const refused = echo.call({ binding: reader }, "p1", { text: "hello" });
    await expect(refused).rejects.toMatchObject({ code: "forbidden" });
  });

  it("[VB4] is a method of the SDK that sends one request", async () => {
    const sent: HttpRequest[] = [];
    const client = {
      request: async (request: HttpRequest) => {
        sent.push(request);
        return { text: "HELLO" };
      },
    } as unknown as HttpClient;
    const { echo } = derivedMethods(client, id, Object.entries(rows));
    const options = { upper: true, lease: "token" };
    expect(await echo?.("p 1", { text: "hello" }, options)).toEqual({ text: "HELLO" });
    expect(sent).toMatchObject([
      {
        method: "POST",
        path: `/v1/sandboxes/${id}/processes/p%201/echo`,
        query: { upper: "1" },
        headers: { "berth-lease": "token" },
        body: { text: "hello" },
        isRepeatable: false,
      },
    ]);
  });

  it("[VB5] is an operation of the OpenAPI document, with its example", () => {
    const { paths } = openApiOf(rows) as { paths: Record<string, Record<string, object>> };
    expect(paths["/v1/sandboxes/{id}/processes/{process}/echo"]?.post).toMatchObject({
      operationId: "echo",
      summary: "Return a text",
      requestBody: { content: { "application/json": { example: { text: "hello" } } } },
      parameters: expect.arrayContaining([
        expect.objectContaining({ name: "upper", in: "query", example: "1" }),
      ]),
    });
  });

  it("[VB6] reaches the agent under the public path without the sandbox", () => {
    const args = { target: "p1", query: { upper: true }, body: { text: "hello" } };
    expect(toAgentRequest(rows.echo, args)).toEqual({
      method: "POST",
      path: "/v1/processes/p1/echo?upper=true",
      body: '{"text":"hello"}',
    });
  });
});
