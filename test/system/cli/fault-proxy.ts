/** A proxy in front of a server that fails the calls a test names, and records all calls. */
import { once } from "node:events";
import {
  createServer,
  type IncomingMessage,
  request,
  type Server,
  type ServerResponse,
} from "node:http";
import type { AddressInfo } from "node:net";

/** `500`: a response that is not Berth's. `reset`: the connection breaks. `nonsense`: a body that is not JSON. */
export type Fault = "500" | "reset" | "nonsense";

export class FaultProxy implements AsyncDisposable {
  readonly url: string;
  readonly calls: string[] = [];
  readonly #server: Server;
  #fault: { pattern: RegExp; fault: Fault } | undefined;

  private constructor(server: Server, to: string) {
    this.#server = server;
    this.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    server.on("request", (incoming: IncomingMessage, response: ServerResponse) => {
      this.#relay(to, incoming, response);
    });
  }

  static async to(url: string): Promise<FaultProxy> {
    const server = createServer();
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    return new FaultProxy(server, url);
  }

  /** Fails calls whose `GET /v1/…` matches, until called again. */
  fail(pattern: RegExp | undefined, fault: Fault = "500"): void {
    this.#fault = pattern === undefined ? undefined : { pattern, fault };
    this.calls.length = 0;
  }

  #relay(to: string, incoming: IncomingMessage, response: ServerResponse): void {
    const call = `${incoming.method} ${incoming.url}`;
    this.calls.push(call);
    if (this.#fault?.pattern.test(call)) {
      incoming.resume();
      if (this.#fault.fault === "reset") incoming.socket.destroy();
      else if (this.#fault.fault === "nonsense") response.writeHead(200).end("<html>");
      else response.writeHead(500, { "content-type": "text/plain" }).end("a fault");
      return;
    }
    const { method, headers } = incoming;
    const forwarded = request(
      `${to}${incoming.url}`,
      { method: method ?? "GET", headers },
      (upstream) => {
        response.writeHead(upstream.statusCode ?? 502, upstream.headers);
        upstream.pipe(response);
      },
    );
    forwarded.on("error", () => response.destroy());
    incoming.pipe(forwarded);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.close();
    this.#server.closeAllConnections();
    await once(this.#server, "close");
  }
}
