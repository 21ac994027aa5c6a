/**
 * Serves a page with the SDK to a browser.
 */
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

export type PageServer = AsyncDisposable & { url: string };

export async function startPageServer(sdk: string): Promise<PageServer> {
  const own: Record<string, [type: string, text: string]> = {
    "/": [
      "text/html",
      '<!doctype html><script type="module">import * as sdk from "/client.js"; window.sdk = sdk;</script>',
    ],
    "/client.js": ["text/javascript", readFileSync(sdk, "utf8")],
  };
  const server = createServer((incoming, response) => {
    const [type, text] = own[incoming.url ?? ""] ?? [];
    if (type !== undefined) response.writeHead(200, { "content-type": type }).end(text);
    else response.writeHead(404).end();
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
