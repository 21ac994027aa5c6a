/** Serves E2B's calls about sandboxes and snapshots. */
import type { Caller } from "../../protocol/rights.ts";
import { ApiCalls } from "../api-calls.ts";
import type { WireHost } from "../host.ts";
import { toWireError, WireError } from "./errors.ts";
import { forkSandbox } from "./fork.ts";
import { listAll, listRunning } from "./list.ts";
import { bareId } from "./plane.ts";
import * as sandboxes from "./sandboxes.ts";
import * as snapshots from "./snapshots.ts";

export type ControlCall = {
  calls: ApiCalls;
  /** The sandbox or snapshot that the path names. */
  id: string;
  query: URLSearchParams;
  body: Record<string, unknown>;
};

type Serve = (call: ControlCall) => Promise<Response>;

const segment = "([^/]+)";
const routes: [method: string, path: RegExp, serve: Serve][] = (
  [
    ["POST", "/sandboxes", (call) => sandboxes.create(call, 15)],
    ["POST", "/v2/sandboxes", (call) => sandboxes.create(call, 300)],
    ["GET", "/v2/sandboxes", listAll],
    ["GET", "/sandboxes", listRunning],
    ["GET", `/sandboxes/${segment}`, sandboxes.get],
    ["DELETE", `/sandboxes/${segment}`, sandboxes.kill],
    ["POST", `/sandboxes/${segment}/timeout`, sandboxes.setTimeout],
    ["POST", `/sandboxes/${segment}/refreshes`, sandboxes.refresh],
    ["POST", `/sandboxes/${segment}/pause`, sandboxes.pause],
    ["POST", `/sandboxes/${segment}/connect`, sandboxes.connect],
    ["POST", `/v2/sandboxes/${segment}/connect`, sandboxes.connect],
    ["POST", `/sandboxes/${segment}/resume`, sandboxes.resume],
    ["POST", `/sandboxes/${segment}/fork`, forkSandbox],
    ["POST", `/sandboxes/${segment}/snapshots`, snapshots.create],
    ["GET", "/snapshots", snapshots.list],
    ["DELETE", `/templates/${segment}`, snapshots.remove],
  ] as [string, string, Serve][]
).map(([method, path, serve]) => [method, new RegExp(`^${path}$`), serve]);

export async function serveControl(request: Request, host: WireHost): Promise<Response> {
  try {
    return await serve(request, host);
  } catch (thrown) {
    const error = toWireError(thrown);
    if (error === undefined) throw thrown;
    return error.response();
  }
}

async function serve(request: Request, host: WireHost): Promise<Response> {
  const { pathname, searchParams } = new URL(request.url);
  const key = request.headers.get("x-api-key");
  if (key === null) throw new WireError(401, "the header X-API-KEY is missing");
  const calls = new ApiCalls(host, await authenticate(host, plainKey(key)));
  for (const [method, pattern, serveRoute] of routes) {
    const match = method === request.method ? pattern.exec(pathname) : null;
    if (match === null) continue;
    const body = method === "GET" ? {} : await readJson(request);
    const idInPath = decode(match[1] ?? "");
    const id = pathname.startsWith("/templates/") ? idInPath : bareId(idInPath);
    return await serveRoute({ calls, id, query: searchParams, body });
  }
  throw new WireError(501, `${request.method} ${pathname.slice(0, 200)} is not served here`);
}

async function authenticate(host: WireHost, key: string): Promise<Caller> {
  const caller = await host.authenticate(key);
  if (caller !== undefined && caller.token === undefined) return caller;
  throw new WireError(401, "the key is unknown");
}

/** Clients before 2.46 send only keys of this form: `e2b_` and the bytes of the key in hex. */
function plainKey(key: string): string {
  const hex = /^e2b_((?:[0-9a-f]{2})+)$/.exec(key)?.[1];
  if (hex === undefined) return key;
  return String.fromCharCode(...(hex.match(/../g) ?? []).map((byte) => Number.parseInt(byte, 16)));
}

async function readJson(request: Request): Promise<Record<string, unknown>> {
  const text = await request.text();
  if (text.length > bodyCharsMax) throw new WireError(413, "the body is too large");
  let body: unknown;
  try {
    body = text === "" ? {} : JSON.parse(text);
  } catch {
    throw new WireError(400, "the body is not JSON");
  }
  if (typeof body === "object" && body !== null && !Array.isArray(body)) {
    return body as Record<string, unknown>;
  }
  throw new WireError(400, "the body is not an object");
}

const bodyCharsMax = 1024 * 1024;

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw new WireError(400, "the path is not percent-encoded UTF-8");
  }
}
