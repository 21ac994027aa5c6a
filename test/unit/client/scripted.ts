/**
 * Owns a server that answers each call as a test says, in order, and remembers what it was asked.
 * Does not own what Berth would answer: the suites over the real one have that.
 */
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export type Asked = {
  method: string;
  path: string;
  headers: IncomingMessage["headers"];
  body: Buffer;
  /** Resolves when the caller's connection is gone. */
  gone: Promise<void>;
};

export type Answer = (response: ServerResponse, asked: Asked) => void | Promise<void>;

export class Scripted implements AsyncDisposable {
  readonly asked: Asked[] = [];
  readonly #server: Server;
  readonly #answers: Answer[];

  private constructor(server: Server, answers: Answer[]) {
    this.#server = server;
    this.#answers = answers;
  }

  static async answering(...answers: Answer[]): Promise<Scripted> {
    const server = createServer((request, response) => {
      response.on("error", () => undefined);
      void scripted.#take(request, response).catch(() => response.destroy());
    });
    const scripted = new Scripted(server, answers);
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    return scripted;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async #take(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const pieces: Buffer[] = [];
    const gone = new Promise<void>((resolve) => response.once("close", resolve));
    // Before the body: one that breaks off was asked too.
    const { method = "", url = "", headers } = request;
    const asked = { method, path: url, headers, body: Buffer.alloc(0), gone };
    const answer = this.#answers[this.asked.length];
    this.asked.push(asked);
    for await (const piece of request) pieces.push(piece);
    asked.body = Buffer.concat(pieces);
    await (answer ?? refuse("internal", { message: "nothing more was to be asked" }))(
      response,
      asked,
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, "close");
  }
}

export function tell(content: unknown, status = 200): Answer {
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

export function refuse(
  code: string,
  { retryAfter, ...facts }: { retryAfter?: string; [fact: string]: unknown } = {},
): Answer {
  return (response) => {
    if (retryAfter !== undefined) response.setHeader("retry-after", retryAfter);
    response.writeHead(statuses[code] ?? 400, { "content-type": "application/json" });
    const error = { message: "as the test says", retryable: true, ...facts, code };
    response.end(JSON.stringify({ error, requestId: "of-the-server" }));
  };
}

/** The connection breaks when the call has arrived whole. */
export const breakOff: Answer = (response) => void response.destroy();

/** Nothing, ever. */
export const keepSilent: Answer = () => undefined;

/** Server-sent events as far as this text goes; there the connection ends, whether all was told or not. */
export function stream(text: string, end: "closed" | "broken" = "closed"): Answer {
  return (response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    if (end === "closed") response.end(text);
    else response.write(text, () => setImmediate(() => response.destroy()));
  };
}
