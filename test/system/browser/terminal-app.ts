/**
 * Runs a small application as a customer would: a page with a terminal, a server that holds the key and hands out
 * tickets, and Berth behind the same origin.
 */
import { readFileSync } from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { join } from "node:path";
import type { Duplex } from "node:stream";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { root } from "../../../container/launch/paths.js";
import type { RunningServer } from "../server.ts";

const files: Record<string, { path: string; type: string }> = {
  "/": { path: fileURLToPath(new URL("pages/terminal.html", import.meta.url)), type: "text/html" },
  "/xterm.js": stock("xterm/lib/xterm.js", "text/javascript"),
  "/xterm.css": stock("xterm/css/xterm.css", "text/css"),
  "/addon-attach.js": stock("addon-attach/lib/addon-attach.js", "text/javascript"),
};

export class TerminalApp implements AsyncDisposable {
  readonly #berth: RunningServer;
  readonly #terminal: string;
  readonly #sockets = new Set<Duplex>();
  readonly #server = createServer((incoming, response) => this.#answer(incoming, response));

  /** `terminal`: the path of one at Berth. */
  static async start(berth: RunningServer, terminal: string): Promise<TerminalApp> {
    const app = new TerminalApp(berth, terminal);
    await new Promise<void>((resolve) => app.#server.listen(0, "127.0.0.1", resolve));
    return app;
  }

  private constructor(berth: RunningServer, terminal: string) {
    this.#berth = berth;
    this.#terminal = terminal;
    this.#server.on("upgrade", (incoming, socket) => this.#passOn(incoming, socket));
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async ticket(): Promise<string> {
    const sandbox = this.#terminal.replace(/\/terminals\/.*$/, "");
    const { body } = await this.#berth.call("POST", `${sandbox}/tickets`);
    return `${this.#terminal}/connect?ct=${body.ticket}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  async #answer(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const { pathname } = new URL(incoming.url ?? "/", this.url);
    const file = files[pathname];
    if (file !== undefined) {
      response.writeHead(200, { "content-type": file.type }).end(readFileSync(file.path));
    } else if (pathname === "/ticket") {
      const { cols, rows } = (await this.#berth.call("GET", this.#terminal)).body;
      response.end(JSON.stringify({ path: await this.ticket(), cols, rows }));
    } else if (pathname === "/size") {
      const size = JSON.parse(await text(incoming));
      response.writeHead((await this.#berth.call("PATCH", this.#terminal, size)).status).end();
    } else {
      response.writeHead(404).end();
    }
  }

  /** As a reverse proxy does: with the host that the browser asked for. */
  #passOn(incoming: IncomingMessage, socket: Duplex): void {
    this.#sockets.add(socket);
    socket.on("error", () => socket.destroy());
    const { hostname, port } = new URL(this.#berth.url);
    const way = connect(Number(port), hostname);
    way.on("error", () => socket.destroy());
    way.on("close", () => socket.destroy());
    socket.on("close", () => way.destroy());
    const { rawHeaders } = incoming;
    const headers = rawHeaders.flatMap((name, index) =>
      index % 2 === 0 ? [`${name}: ${rawHeaders[index + 1]}`] : [],
    );
    way.write(`GET ${incoming.url} HTTP/1.1\r\n${headers.join("\r\n")}\r\n\r\n`);
    way.pipe(socket);
    socket.pipe(way);
  }
}

function stock(path: string, type: string): { path: string; type: string } {
  return { path: join(root, "node_modules/@xterm", path), type };
}
