/**
 * The HTTP client of the load generator: one call over a kept-alive connection, with as little work as Node allows. It
 * shares the machine with the measured server on both sides of a ratio.
 */
import { Agent, type ClientRequest, type IncomingMessage, request } from "node:http";
import { pipeline } from "node:stream/promises";

/** Only a hanging call reaches this limit. */
const responseTimeoutMs = 120_000;
const piece = Buffer.alloc(64 * 1024, "berth");

type HttpResult = { status: number; text: string };
type Headers = Record<string, string | number>;
type RequestOptions = { method: string; path: string; headers: Headers };

export class Http {
  readonly #agent: Agent;
  readonly #hostname: string;
  readonly #port: string;
  readonly #headers: Headers;

  constructor(url: string, headers: Record<string, string> = {}, connections = 16) {
    const { hostname, port } = new URL(url);
    this.#hostname = hostname;
    this.#port = port;
    this.#headers = headers;
    this.#agent = new Agent({ keepAlive: true, maxSockets: connections });
  }

  get url(): string {
    return `http://${this.#hostname}:${this.#port}`;
  }

  /** A JSON body as an object, or already as text. */
  call(
    method: string,
    path: string,
    body?: string | object,
    more: Headers = {},
  ): Promise<HttpResult> {
    const text = typeof body === "object" ? JSON.stringify(body) : body;
    const headers = { ...more };
    if (text !== undefined) {
      headers["content-type"] = "application/json";
      headers["content-length"] = Buffer.byteLength(text);
    }
    return this.#send({ method, path, headers }, (call) => call.end(text), readText);
  }

  /** The body of the response; an error ends the row. */
  async ok(method: string, path: string, body?: string | object, more?: Headers): Promise<string> {
    const { status, text } = await this.call(method, path, body, more);
    if (status >= 300) throw new Error(`${method} ${path} returned ${status}: ${text}`);
    return text;
  }

  async json<Result>(
    method: string,
    path: string,
    body?: string | object,
    more?: Headers,
  ): Promise<Result> {
    return JSON.parse(await this.ok(method, path, body, more)) as Result;
  }

  /** Requires that this many bytes arrive. */
  download(path: string, expectedBytes: number, headers: Headers = {}): Promise<void> {
    return this.#send(
      { method: "GET", path, headers },
      (call) => call.end(),
      async (response) => {
        if (response.statusCode !== 200) {
          response.resume();
          throw new Error(`GET ${path} returned ${response.statusCode}`);
        }
        let bytes = 0;
        response.on("data", (chunk: Buffer) => {
          bytes += chunk.length;
        });
        await ended(response);
        if (bytes !== expectedBytes)
          throw new Error(`GET ${path}: ${bytes} of ${expectedBytes} bytes`);
      },
    );
  }

  /** Sends that many bytes and waits for the complete response. */
  upload(path: string, bytes: number): Promise<void> {
    const headers = { "content-type": "application/octet-stream", "content-length": bytes };
    return this.#send(
      { method: "PUT", path, headers },
      // The request itself reports its errors.
      (call) => void pipeline(piecesOf(bytes), call).catch(() => undefined),
      async (response) => {
        const { status, text } = await readText(response);
        if (status >= 300) throw new Error(`PUT ${path} returned ${status}: ${text}`);
      },
    );
  }

  /** Opens a WebSocket to the same server, with the same headers. */
  socket(path: string, protocol?: string): WebSocket {
    const options = {
      headers: this.#headers,
      protocols: protocol === undefined ? [] : [protocol],
    };
    const url = `ws://${this.#hostname}:${this.#port}${path}`;
    // Node's WebSocket also accepts headers.
    const socket = new WebSocket(url, options as never);
    socket.binaryType = "arraybuffer";
    return socket;
  }

  close(): void {
    this.#agent.destroy();
  }

  #send<Result>(
    { method, path, headers }: RequestOptions,
    write: (call: ClientRequest) => void,
    read: (response: IncomingMessage) => Promise<Result>,
  ): Promise<Result> {
    return new Promise((resolve, reject) => {
      const call = request(
        {
          ...{ hostname: this.#hostname, port: this.#port, agent: this.#agent, method, path },
          ...{ headers: { ...this.#headers, ...headers }, timeout: responseTimeoutMs },
        },
        (response) => void read(response).then(resolve, reject),
      );
      call.once("timeout", () =>
        call.destroy(new Error(`${method} ${path}: no bytes within ${responseTimeoutMs} ms`)),
      );
      call.once("error", reject);
      write(call);
    });
  }
}

/** Content that is no hole for any file system. */
export function* piecesOf(bytes: number): Generator<Uint8Array> {
  for (let left = bytes; left > 0; left -= piece.length) {
    yield left >= piece.length ? piece : piece.subarray(0, left);
  }
}

async function readText(response: IncomingMessage): Promise<HttpResult> {
  let text = "";
  response.setEncoding("utf8");
  response.on("data", (chunk: string) => {
    text += chunk;
  });
  await ended(response);
  return { status: response.statusCode ?? 0, text };
}

function ended(response: IncomingMessage): Promise<void> {
  return new Promise((resolve, reject) => {
    response.once("error", reject);
    response.once("end", () => resolve());
  });
}
