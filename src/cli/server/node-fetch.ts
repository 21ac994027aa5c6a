/**
 * Sends the requests of the SDK through Node's own client. The first `fetch` of a process takes longer than the rest of
 * a short command: Node compiles a second HTTP client for it.
 */
import type { ClientRequest, IncomingMessage, RequestOptions } from "node:http";
import { createRequire } from "node:module";
import type { Socket } from "node:net";
import { Readable } from "node:stream";
import type { ConnectOptions } from "../../client/index.ts";

type Fetch = NonNullable<ConnectOptions["fetch"]>;
type Client = typeof import("node:http");

/** An `import` would evaluate every export of `node:http`, among them the client behind `fetch`. */
const require = createRequire(import.meta.url);
/** A server or proxy closes idle connections after a time of its own; a request on one of them would be lost. */
const idleMs = 4_000;
const connectTimeoutMs = 10_000;

const agents = new Map<string, RequestOptions["agent"]>();

export const nodeFetch: Fetch = (url, { method, headers, body, signal }) =>
  new Promise((resolve, reject) => {
    signal?.throwIfAborted();
    const { protocol } = new URL(url);
    const client: Client = require(protocol === "https:" ? "node:https" : "node:http");
    const agent = agents.get(protocol) ?? new client.Agent({ keepAlive: true, timeout: idleMs });
    agents.set(protocol, agent);
    const options: RequestOptions = { agent, headers: headers as Record<string, string> };
    if (method !== undefined) options.method = method;
    const request = client.request(url, options);
    const abort = () => request.destroy(signal?.reason as Error);
    signal?.addEventListener("abort", abort);
    request.once("close", () => signal?.removeEventListener("abort", abort));
    request.once("socket", (socket) => limitConnecting(request, socket));
    // Also after the response has begun: then reading its body fails.
    request.on("error", reject);
    request.once("response", (message) => resolve(toResponse(message)));
    sendBody(request, body);
  });

/** The system would try for two minutes. */
function limitConnecting(request: ClientRequest, socket: Socket): void {
  if (!socket.connecting) return;
  const failure = Object.assign(new Error("no connection"), {
    code: "ETIMEDOUT",
    syscall: "connect",
  });
  const timer = setTimeout(() => request.destroy(failure), connectTimeoutMs);
  for (const event of ["connect", "close"]) socket.once(event, () => clearTimeout(timer));
}

function sendBody(request: ClientRequest, body: RequestInit["body"]): void {
  if (body === undefined || body === null) return void request.end();
  if (typeof body === "string" || body instanceof Uint8Array) return void request.end(body);
  const source = body instanceof Blob ? body.stream() : (body as ReadableStream<Uint8Array>);
  Readable.from(source)
    .on("error", (error) => request.destroy(error))
    .pipe(request);
}

/** What the SDK uses of a response; making a real one would load what this file avoids. */
function toResponse(message: IncomingMessage): Response {
  const { statusCode: status = 0, headers } = message;
  const find = (name: string) => headers[name];
  const chunks = message[Symbol.asyncIterator]();
  const reader = {
    read: () => chunks.next(),
    // A body that was read to its end leaves its connection open for the next request.
    cancel: async () => {
      if (!message.readableEnded) message.destroy();
    },
  };
  const response = {
    ok: status >= 200 && status < 300,
    status,
    headers: { get: (name: string) => find(name) ?? null, has: (name: string) => name in headers },
    body: { getReader: () => reader },
  };
  return response as unknown as Response;
}
