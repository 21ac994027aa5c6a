/**
 * Owns a relay before a server that fails the calls a test names, and counts all of them.
 */

import { once } from "node:events";
import {
  createServer,
  type IncomingMessage,
  request,
  type Server,
  type ServerResponse,
} from "node:http";
import type { AddressInfo } from "node:net";

/** 500: an answer that is none of Berth's. `reset`: the connection breaks. `nonsense`: what is no JSON. */
export type Fault = "500" | "reset" | "nonsense";

export class FaultProxy implements AsyncDisposable {
  readonly url: string;
  readonly calls: string[] = [];
  readonly #server: Server;
  #fault: { pattern: RegExp; fault: Fault } | undefined;

  private constructor(server: Server, to: string) {
    this.#server = server;
    this.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    server.on("request", (asked: IncomingMessage, answer: ServerResponse) => {
      this.#relay(to, asked, answer);
    });
  }

  static async to(url: string): Promise<FaultProxy> {
    const server = createServer();
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    return new FaultProxy(server, url);
  }

  /** Of `GET /v1/…`, until it is told otherwise. */
  fail(pattern: RegExp | undefined, fault: Fault = "500"): void {
    this.#fault = pattern === undefined ? undefined : { pattern, fault };
    this.calls.length = 0;
  }

  #relay(to: string, asked: IncomingMessage, answer: ServerResponse): void {
    const call = `${asked.method} ${asked.url}`;
    this.calls.push(call);
    if (this.#fault?.pattern.test(call)) {
      asked.resume();
      if (this.#fault.fault === "reset") asked.socket.destroy();
      else if (this.#fault.fault === "nonsense") answer.writeHead(200).end("<html>");
      else answer.writeHead(500, { "content-type": "text/plain" }).end("a fault");
      return;
    }
    const { method, headers } = asked;
    const onward = request(`${to}${asked.url}`, { method: method ?? "GET", headers }, (got) => {
      answer.writeHead(got.statusCode ?? 502, got.headers);
      got.pipe(answer);
    });
    onward.on("error", () => answer.destroy());
    asked.pipe(onward);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.close();
    this.#server.closeAllConnections();
    await once(this.#server, "close");
  }
}
