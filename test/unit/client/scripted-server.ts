/**
 * An HTTP server that responders each request as a test says, in order, and records what it received.
 */
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export type ReceivedRequest = {
  method: string;
  path: string;
  headers: IncomingMessage["headers"];
  body: Buffer;
  /** Resolves when the caller's connection is closed. */
  closed: Promise<void>;
};

export type Responder = (
  response: ServerResponse,
  received: ReceivedRequest,
) => void | Promise<void>;

export class ScriptedServer implements AsyncDisposable {
  readonly requests: ReceivedRequest[] = [];
  readonly #server: Server;
  readonly #responders: Responder[];

  private constructor(server: Server, responders: Responder[]) {
    this.#server = server;
    this.#responders = responders;
  }

  static async start(...responders: Responder[]): Promise<ScriptedServer> {
    const http = createServer((request, response) => {
      response.on("error", () => undefined);
      void server.#handle(request, response).catch(() => response.destroy());
    });
    const server = new ScriptedServer(http, responders);
    http.listen(0, "127.0.0.1");
    await once(http, "listening");
    return server;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async #handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    const closed = new Promise<void>((resolve) => response.once("close", resolve));
    // Recorded before the body: a request that is cut off counts too.
    const { method = "", url = "", headers } = request;
    const received = { method, path: url, headers, body: Buffer.alloc(0), closed };
    const responder = this.#responders[this.requests.length];
    this.requests.push(received);
    for await (const chunk of request) chunks.push(chunk);
    received.body = Buffer.concat(chunks);
    await (responder ?? respondError("internal", { message: "the test expects no more requests" }))(
      response,
      received,
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, "close");
  }
}

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
