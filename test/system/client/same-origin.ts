/**
 * Owns a place that a browser's page may come from: the SDK as a file, a page that has it, and, where one is given,
 * Berth behind the same host.
 * Does not own WebSockets.
 */
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer, type IncomingMessage, request, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export type Place = AsyncDisposable & { url: string };

export async function startPlace(sdk: string, berth?: string): Promise<Place> {
  const own: Record<string, [type: string, text: string]> = {
    "/": [
      "text/html",
      '<!doctype html><script type="module">import * as sdk from "/client.js"; window.sdk = sdk;</script>',
    ],
    "/client.js": ["text/javascript", readFileSync(sdk, "utf8")],
  };
  const server = createServer((asked, answer) => {
    const [type, text] = own[asked.url ?? ""] ?? [];
    if (type !== undefined) answer.writeHead(200, { "content-type": type }).end(text);
    else if (berth !== undefined) passOn(berth, asked, answer);
    else answer.writeHead(404).end();
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

function passOn(berth: string, asked: IncomingMessage, answer: ServerResponse): void {
  const { method, headers } = asked;
  const further = request(`${berth}${asked.url}`, { method, headers }, (told) => {
    answer.writeHead(told.statusCode ?? 500, told.headers);
    told.pipe(answer);
  });
  further.on("error", () => answer.destroy());
  answer.on("close", () => further.destroy());
  asked.pipe(further);
}
