/**
 * Owns the load generator's HTTP: one JSON call over a connection that is kept, as little work as Node allows.
 * Does not own what is called. It shares the machine with what it measures, on both sides of a ratio alike.
 */
import { Agent, request } from "node:http";

/** Only a hang meets it. */
const answerMs = 120_000;

export type Answer = { status: number; text: string };

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
  ): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const headers: Record<string, string | number> = { ...this.#headers, ...more };
      if (body !== undefined) {
        headers["content-type"] = "application/json";
        headers["content-length"] = Buffer.byteLength(body);
      }
      const call = request(
        {
          ...{ hostname: this.#hostname, port: this.#port, agent: this.#agent },
          ...{ method, path, headers, timeout: answerMs },
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
        call.destroy(new Error(`${method} ${path}: no answer in ${answerMs} ms`)),
      );
      call.once("error", reject);
      call.end(body);
    });
  }

  /** An answer of bytes, handed over as they come; `take` may look at them only while it is called. */
  stream(
    path: string,
    more: Record<string, string>,
    take: (bytes: Uint8Array) => void,
  ): Promise<void> {
    return new Promise((resolve, reject) => {
      const call = request(
        {
          ...{ hostname: this.#hostname, port: this.#port, agent: this.#agent, path },
          ...{ headers: { ...this.#headers, ...more }, timeout: answerMs },
        },
        (response) => {
          if (response.statusCode !== 200) {
            response.resume();
            reject(new Error(`GET ${path} answered ${response.statusCode}`));
            return;
          }
          response.on("data", take);
          response.once("error", reject);
          response.once("end", () => resolve());
        },
      );
      call.once("timeout", () =>
        call.destroy(new Error(`GET ${path}: no bytes in ${answerMs} ms`)),
      );
      call.once("error", reject);
      call.end();
    });
  }

  /** A WebSocket to the same server, with the same headers. */
  socket(path: string, protocol?: string): WebSocket {
    const options = {
      headers: this.#headers,
      protocols: protocol === undefined ? [] : [protocol],
    };
    const url = `ws://${this.#hostname}:${this.#port}${path}`;
    // Node's own takes headers too.
    const socket = new WebSocket(url, options as never);
    socket.binaryType = "arraybuffer";
    return socket;
  }

  close(): void {
    this.#agent.destroy();
  }
}

/** `count` calls, at most `wide` under way at once. */
export async function parallel<T>(
  count: number,
  wide: number,
  work: (at: number) => Promise<T>,
): Promise<T[]> {
  const results: T[] = new Array(count);
  let next = 0;
  const stream = async () => {
    for (let at = next++; at < count; at = next++) results[at] = await work(at);
  };
  await Promise.all(Array.from({ length: Math.min(wide, count) }, stream));
  return results;
}
