/** Calls the Worker in the workerd tests, with the keys of two tenants. */
import { createExecutionContext } from "cloudflare:test";
import { env } from "cloudflare:workers";
import worker from "./worker.ts";

export const keys = { local: "berth_local_of_the_tests", other: "berth_other_of_the_tests" };

type Options = { key?: string | null; body?: unknown; headers?: Record<string, string> };

export function call(method: string, path: string, options: Options = {}): Promise<Response> {
  const { key = keys.local, body, headers = {} } = options;
  const sent: Record<string, string> = { ...headers };
  if (key !== null) sent.authorization ??= `Bearer ${key}`;
  const init: RequestInit = { method, headers: sent };
  if (body !== undefined) {
    sent["content-type"] ??= "application/json";
    const isBytes = body instanceof Uint8Array || body instanceof ReadableStream;
    init.body = typeof body === "string" || isBytes ? body : JSON.stringify(body);
  }
  return fetchWorker(new Request(`http://berth.test${path}`, init));
}

/** Calls the Worker directly: the pool's own way loads it again for each call, slower each time. */
export async function fetchWorker(request: Request): Promise<Response> {
  return await worker.fetch(request, env, createExecutionContext());
}

/** A body of any form, errors included; the tests check its fields. */
// biome-ignore lint/suspicious/noExplicitAny: reads of fields that are not there must fail in the test, not here
type Body = Record<string, any>;

export async function json(response: Response | Promise<Response>): Promise<Body> {
  return (await (await response).json()) as Body;
}

export async function createSandbox(body: Record<string, unknown> = {}): Promise<string> {
  const response = await call("POST", "/v1/sandboxes", { body: { waitMs: 10_000, ...body } });
  if (response.status !== 201) throw new Error(`create answered ${response.status}`);
  return ((await response.json()) as { id: string }).id;
}

export const stubOf = (id: string) => env.SANDBOX.getByName(id);
export const pathOf = (id: string, tail = "") => `/v1/sandboxes/${id}${tail}`;
export const upgrade = { upgrade: "websocket" };

/** The status and the code of a response that refuses. */
export async function refusal(response: Response | Promise<Response>) {
  const { status, webSocket } = await response;
  if (webSocket !== null) throw new Error("it was not refused");
  return [status, (await json(response)).error?.code];
}
