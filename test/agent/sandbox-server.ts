/** A small server like one of a user: it echoes bodies and WebSocket messages, streams and redirects. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { gzipSync } from "node:zlib";
import { WebSocketServer } from "ws";

export type SandboxServer = {
  port: number;
  /** The last request. */
  seen: () => IncomingMessage;
  /** How many requests their callers have cancelled. */
  aborted: () => number;
  close: () => Promise<void>;
};

export const zipped = gzipSync("zipped text");

export async function startServer(): Promise<SandboxServer> {
  let seen: IncomingMessage | undefined;
  let aborted = 0;
  const server = createServer((request, response) => {
    seen = request;
    response.on("close", () => {
      if (!response.writableFinished) aborted += 1;
    });
    answer(request, response);
  });
  const sockets = new WebSocketServer({ server, perMessageDeflate: false });
  sockets.on("connection", (socket, request) => {
    seen = request;
    socket.send(`hello ${request.url}`);
    socket.on("message", (message, isBinary) => {
      const text = String(message);
      if (text === "close me") socket.close(4321, "as you wish");
      else if (text === "drop me") socket.terminate();
      else socket.send(message, { binary: isBinary });
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    port: (server.address() as AddressInfo).port,
    seen: () => seen ?? (new Error("no request came") as never),
    aborted: () => aborted,
    close: () => {
      for (const socket of sockets.clients) socket.terminate();
      return close(server);
    },
  };
}

function answer(request: IncomingMessage, response: ServerResponse): void {
  const { pathname } = new URL(request.url ?? "/", "http://server");
  switch (pathname) {
    case "/echo":
      response.writeHead(200, { "content-type": "application/x-echo" });
      request.pipe(response);
      break;
    case "/never":
      response.write("begun");
      break;
    case "/breaks":
      response.writeHead(200, { "content-length": 1000 });
      response.write("begun", () => response.destroy());
      break;
    case "/redirect":
      response.writeHead(302, { location: "/else", "set-cookie": ["a=1", "b=2"] }).end();
      break;
    case "/zipped":
      response
        .writeHead(200, { "content-encoding": "gzip", "content-length": zipped.length })
        .end(zipped);
      break;
    case "/empty":
      response.writeHead(204, { "berth-incarnation": "forged", "x-own": "kept" }).end();
      break;
    default:
      response.writeHead(404).end(`${request.method} ${request.url}`);
  }
}

function close(server: Server): Promise<void> {
  server.closeAllConnections();
  return new Promise((resolve) => server.close(() => resolve()));
}
