/**
 * An HTTP server that responds to each request as a test says, in order, and records what it received.
 */
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { buffer } from "node:stream/consumers";
import { onTestFinished } from "vitest";
import type { Clock } from "../../../src/client/http/http-client.ts";
import { Berth, type BerthError, type ConnectOptions } from "../../../src/client/index.ts";
import type { SandboxCalls } from "../../../src/client/verbs.ts";
import { type ConnectedCalls, connectCalls } from "../../berth-calls.ts";

export type Responder = (response: ServerResponse) => void;

type ReceivedRequest = {
  path: string;
  headers: IncomingMessage["headers"];
  body: Buffer;
  /** Resolves when the caller's connection is closed. */
  closed: Promise<unknown>;
};

type ScriptedServer = { url: string; requests: ReceivedRequest[]; stop: () => void };

/** Runs until the test ends, or until it is stopped. */
async function startScriptedServer(...responders: Responder[]): Promise<ScriptedServer> {
  const requests: ReceivedRequest[] = [];
  const server = createServer(async (request, response) => {
    response.on("error", () => undefined);
    const { url: path = "", headers } = request;
    const closed = once(response, "close").catch(() => undefined);
    // Recorded before the body: a request that is cut off counts too.
    const received = { path, headers, body: Buffer.alloc(0), closed };
    const respond = responders[requests.length] ?? respondError("internal");
    requests.push(received);
    try {
      received.body = await buffer(request);
      respond(response);
    } catch {
      response.destroy();
    }
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const stop = () => {
    server.close();
    server.closeAllConnections();
  };
  onTestFinished(stop);
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, requests, stop };
}

export type Connected = {
  berth: ConnectedCalls;
  /** One of its sandboxes. */
  sandbox: SandboxCalls;
  /** The same server as users of the SDK have it. */
  sdk: Berth;
  server: ScriptedServer;
  /** The waits before retries, in ms. */
  slept: number[];
};

/**
 * A client of a server with these responses, which runs until the test ends. Waits are recorded and end at once, unless
 * `clock` is given.
 */
export async function connectScripted(
  responders: Responder[],
  options: Partial<ConnectOptions> = {},
): Promise<Connected> {
  const server = await startScriptedServer(...responders);
  const { clock, slept } = recordingClock();
  const connection = { url: `${server.url}/`, key: "the key", clock, ...options };
  const berth = connectCalls(connection);
  const sdk = Berth.connect(connection);
  return { berth, sandbox: berth.sandbox("a"), sdk, server, slept };
}

function recordingClock(): { clock: Clock; slept: number[] } {
  const slept: number[] = [];
  let now = 0;
  const clock: Clock = {
    now: () => now,
    chance: () => 1,
    sleep: async (ms) => {
      slept.push(ms);
      now += ms;
    },
  };
  return { clock, slept };
}

/** The error of a call that may have run. */
export const unknownOutcome = {
  code: "operation_interrupted",
  facts: { admitted: "unknown" },
};

/** What the call rejects with. */
export const rejection = (call: Promise<unknown>): Promise<BerthError> =>
  call.then(
    (result) => Promise.reject(new Error(`resolved with ${JSON.stringify(result)}`)),
    (thrown) => thrown,
  );

export function respond(content: unknown, status = 200): Responder {
  return (response) => {
    response.writeHead(status, { "content-type": "application/json" });
    response.end(JSON.stringify(content));
  };
}

const statuses: Record<string, number> = {
  unavailable: 503,
  too_many: 429,
  lease_held: 423,
  queue_full: 429,
  operation_interrupted: 502,
  not_found: 404,
  internal: 500,
};

export function respondError(
  code: string,
  { retryAfter, ...facts }: { retryAfter?: string; [fact: string]: unknown } = {},
): Responder {
  return (response) => {
    if (retryAfter !== undefined) response.setHeader("retry-after", retryAfter);
    response.writeHead(statuses[code] ?? 400, { "content-type": "application/json" });
    const error = { message: "as the test says", retryable: true, ...facts, code };
    response.end(JSON.stringify({ error, requestId: "of-the-server" }));
  };
}

/** Closes the connection once the whole request has arrived. */
export const disconnect: Responder = (response) => void response.destroy();

/** Never responds. */
export const neverRespond: Responder = () => undefined;

/** Sends these server-sent events, then ends or breaks the connection. */
export function respondEvents(text: string, end: "closed" | "broken" = "closed"): Responder {
  return (response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    if (end === "closed") response.end(text);
    else response.write(text, () => setImmediate(() => response.destroy()));
  };
}
