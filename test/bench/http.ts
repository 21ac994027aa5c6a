/**
 * The HTTP client of the load generator: one JSON call over a kept-alive connection, with as little work as Node
 * allows. It shares the machine with the measured server on both sides of a ratio.
 */
import { Agent, request } from "node:http";

/** Only a hanging call reaches this limit. */
const responseTimeoutMs = 120_000;

type HttpResult = { status: number; text: string };

export class Http {
  readonly #agent: Agent;
  readonly #hostname: string;
  readonly #port: string;
  readonly #headers: Record<string, string>;

  constructor(url: string, headers: Record<string, string>, connections = 16) {
    const { hostname, port } = new URL(url);
    this.#hostname = hostname;
    this.#port = port;
    this.#headers = headers;
    this.#agent = new Agent({ keepAlive: true, maxSockets: connections });
  }

  get url(): string {
    return `http://${this.#hostname}:${this.#port}`;
  }

  call(
    method: string,
    path: string,
    body?: string,
    more: Record<string, string> = {},
  ): Promise<HttpResult> {
    return new Promise((resolve, reject) => {
      const headers: Record<string, string | number> = { ...this.#headers, ...more };
      if (body !== undefined) {
        headers["content-type"] = "application/json";
        headers["content-length"] = Buffer.byteLength(body);
      }
      const call = request(
        {
          ...{ hostname: this.#hostname, port: this.#port, agent: this.#agent },
          ...{ method, path, headers, timeout: responseTimeoutMs },
        },
        (response) => {
          let text = "";
          response.setEncoding("utf8");
          response.on("data", (chunk: string) => {
            text += chunk;
          });
          response.once("error", reject);
          response.once("end", () => resolve({ status: response.statusCode ?? 0, text }));
        },
      );
      call.once("timeout", () =>
        call.destroy(new Error(`${method} ${path}: no response within ${responseTimeoutMs} ms`)),
      );
      call.once("error", reject);
      call.end(body);
    });
  }

  /** Streams a response: `take` gets each chunk and must not keep it. */
  stream(
    path: string,
    more: Record<string, string>,
    take: (bytes: Uint8Array) => void,
  ): Promise<void> {
    return new Promise((resolve, reject) => {
      const call = request(
        {
          ...{ hostname: this.#hostname, port: this.#port, agent: this.#agent, path },
          ...{ headers: { ...this.#headers, ...more }, timeout: responseTimeoutMs },
        },
        (response) => {
          if (response.statusCode !== 200) {
            response.resume();
            reject(new Error(`GET ${path} returned ${response.statusCode}`));
            return;
          }
          response.on("data", take);
          response.once("error", reject);
          response.once("end", () => resolve());
        },
      );
      call.once("timeout", () =>
        call.destroy(new Error(`GET ${path}: no bytes within ${responseTimeoutMs} ms`)),
      );
      call.once("error", reject);
      call.end();
    });
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
}

/** Runs `count` calls, at most `concurrency` at once. */
export async function parallel<T>(
  count: number,
  concurrency: number,
  work: (index: number) => Promise<T>,
): Promise<T[]> {
  const results: T[] = new Array(count);
  let next = 0;
  const stream = async () => {
    for (let index = next++; index < count; index = next++) results[index] = await work(index);
  };
  await Promise.all(Array.from({ length: Math.min(concurrency, count) }, stream));
  return results;
}
