/** Serves E2B's daemon of one sandbox: files and health by plain HTTP, processes and folders by the Connect protocol. */
import type { Caller } from "../../protocol/rights.ts";
import { ApiCalls } from "../api-calls.ts";
import type { WireHost } from "../host.ts";
import {
  ConnectError,
  connectStatus,
  decodeRequest,
  encodeEnd,
  parseObject,
} from "./connect-framing.ts";
import {
  isSandboxGone,
  sandboxGoneResponse,
  toConnectError,
  toWireError,
  WireError,
} from "./errors.ts";
import { readFile, writeFiles } from "./files.ts";
import * as folders from "./filesystem.ts";
import * as input from "./process-input.ts";
import { connectProcess, startProcess } from "./process-streams.ts";
import { isSigned } from "./signature.ts";
import { watchFolder } from "./watch.ts";

export type DaemonCall = {
  calls: ApiCalls;
  sandbox: string;
  message: Record<string, unknown>;
  headers: Headers;
  /** Aborted when the client has left. */
  signal: AbortSignal;
};

type Unary = (call: DaemonCall) => Promise<unknown>;
type Stream = (call: DaemonCall) => Promise<ReadableStream<Uint8Array>>;

const unary: Record<string, Unary> = {
  "/process.Process/List": input.list,
  "/process.Process/SendInput": input.sendInput,
  "/process.Process/CloseStdin": input.closeStdin,
  "/process.Process/SendSignal": input.sendSignal,
  "/process.Process/Update": input.update,
  "/filesystem.Filesystem/Stat": folders.stat,
  "/filesystem.Filesystem/MakeDir": folders.makeDir,
  "/filesystem.Filesystem/Move": folders.move,
  "/filesystem.Filesystem/ListDir": folders.listDir,
  "/filesystem.Filesystem/Remove": folders.remove,
};

const streams: Record<string, Stream> = {
  "/process.Process/Start": startProcess,
  "/process.Process/Connect": connectProcess,
  "/filesystem.Filesystem/WatchDir": watchFolder,
};

const messageBytesMax = 4 * 1024 * 1024;

export async function serveDaemon(
  request: Request,
  host: WireHost,
  sandbox: string,
): Promise<Response> {
  const { pathname } = new URL(request.url);
  if (request.method === "OPTIONS") return allowAll(new Response(null, { status: 204 }));
  try {
    return allowAll(await serve(request, host, sandbox, pathname));
  } catch (thrown) {
    if (isSandboxGone(thrown)) return allowAll(sandboxGoneResponse(sandbox));
    const error = toWireError(thrown);
    if (error === undefined) throw thrown;
    return allowAll(error.response());
  }
}

async function serve(
  request: Request,
  host: WireHost,
  sandbox: string,
  pathname: string,
): Promise<Response> {
  if (pathname === "/health") return health(host, sandbox);
  const calls = new ApiCalls(host, await callerOf(request, host, sandbox, pathname));
  const { headers, signal } = request;
  if (pathname === "/files" && request.method === "GET") return readFile(calls, sandbox, request);
  if (pathname === "/files" && request.method === "POST")
    return writeFiles(calls, sandbox, request);
  const [serveUnary, serveStream] = [unary[pathname], streams[pathname]];
  if (request.method !== "POST" || (serveUnary ?? serveStream) === undefined) {
    throw new WireError(404, `the daemon has no route ${request.method} ${pathname.slice(0, 200)}`);
  }
  const bytes = await readMessage(request);
  const isStream = serveStream !== undefined;
  try {
    refuseOtherUsers(headers);
    const message = isStream ? decodeRequest(bytes) : parseObject(bytes);
    const call: DaemonCall = {
      ...{ calls, sandbox, headers, signal },
      message: message as Record<string, unknown>,
    };
    return serveStream === undefined
      ? Response.json((await serveUnary?.(call)) ?? {})
      : streamOf(await serveStream(call));
  } catch (thrown) {
    const error = isSandboxGone(thrown) ? undefined : toConnectError(thrown);
    if (error === undefined) throw thrown;
    return isStream ? streamOf(encodeEnd(error)) : unaryError(error);
  }
}

function streamOf(body: ReadableStream<Uint8Array> | Uint8Array): Response {
  return new Response(body as BodyInit, {
    headers: { "content-type": "application/connect+json", "cache-control": "no-store" },
  });
}

function unaryError({ code, message }: ConnectError): Response {
  return Response.json({ code, message }, { status: connectStatus[code] });
}

async function health(host: WireHost, sandbox: string): Promise<Response> {
  const tenant = await host.ownerOf(sandbox);
  if (tenant === undefined) return sandboxGoneResponse(sandbox);
  const calls = new ApiCalls(host, { tenant, rights: ["read"] });
  const { state } = await calls.json<{ state: string }>("GET", `/v1/sandboxes/${sandbox}`);
  return state === "running" ? new Response(null, { status: 204 }) : sandboxGoneResponse(sandbox);
}

/** Files may be reached by a signed address instead of the token. */
async function callerOf(
  request: Request,
  host: WireHost,
  sandbox: string,
  pathname: string,
): Promise<Caller> {
  const token = request.headers.get("x-access-token");
  const isFiles = pathname === "/files";
  if (token !== null) {
    const caller = await tokenCaller(host, token, sandbox);
    if (caller !== undefined) return caller;
    const why = isFiles ? "access token present in header but does not match" : unauthorized;
    throw new WireError(401, why);
  }
  if (!isFiles) throw new WireError(401, unauthorized);
  const tenant = await host.ownerOf(sandbox);
  if (tenant === undefined) throw new WireError(401, "invalid signature");
  const owner: Caller = { tenant, rights: ["read", "files"] };
  const refused = isSigned(request, await host.tokenOf(owner, sandbox), Date.now());
  if (refused !== undefined) throw new WireError(401, refused);
  return owner;
}

const unauthorized = "unauthorized access, the header X-Access-Token is missing or wrong";

async function tokenCaller(
  host: WireHost,
  token: string,
  sandbox: string,
): Promise<Caller | undefined> {
  const caller = await host.authenticate(token);
  return caller?.token?.sandbox === sandbox ? caller : undefined;
}

/** Everybody is the one user of the sandbox, under the name that clients expect. */
export function refuseOtherUsers(headers: Headers): void {
  const basic = /^Basic (\S+)$/i.exec(headers.get("authorization") ?? "")?.[1];
  if (basic === undefined) return;
  const user = Buffer.from(basic, "base64").toString().split(":", 1)[0] ?? "";
  if (isKnownUser(user)) return;
  throw new ConnectError("unauthenticated", `invalid username: '${user}'`);
}

export function isKnownUser(user: string): boolean {
  return user === "" || user === "user" || user === "berth";
}

async function readMessage(request: Request): Promise<Uint8Array> {
  const length = Number(request.headers.get("content-length") ?? 0);
  const bytes = length > messageBytesMax ? undefined : await request.bytes();
  if (bytes !== undefined && bytes.length <= messageBytesMax) return bytes;
  throw new WireError(413, `a message has at most ${messageBytesMax} bytes`);
}

/** Pages of any origin may call: nothing here depends on cookies. */
function allowAll(response: Response): Response {
  const headers = new Headers(response.headers);
  headers.set("access-control-allow-origin", "*");
  headers.set("access-control-allow-headers", "*");
  headers.set("access-control-allow-methods", "*");
  headers.set("access-control-expose-headers", "*");
  const { status, statusText, body } = response;
  return new Response(body, { status, statusText, headers });
}
