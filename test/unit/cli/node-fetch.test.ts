/** Tests that the command's way to send requests behaves as `fetch` does for the SDK. */
import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, it } from "vitest";
import { nodeFetch } from "../../../src/cli/server/node-fetch.ts";
import { connect } from "../../../src/client/index.ts";

async function serve(respond: RequestListener) {
  const server = createServer(respond).listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const end = () => {
    server.closeAllConnections();
    server.close();
  };
  return { url: `http://127.0.0.1:${port}`, [Symbol.dispose]: end };
}

const berthAt = (url: string) =>
  connect({ url, key: "k", fetch: nodeFetch, retry: { retries: 0 } });

it("[CL42] sends text, bytes and streams, and reads headers, texts and errors", async () => {
  const bodies: string[] = [];
  using server = await serve(async (request, response) => {
    let body = "";
    for await (const chunk of request) body += chunk;
    bodies.push(`${request.method} ${body}`);
    if (request.url?.includes("missing")) {
      response.writeHead(404, { "content-type": "application/json" });
      return response.end(
        '{"error":{"code":"not_found","message":"No.","retryable":false},"requestId":"r1"}',
      );
    }
    response.writeHead(200, { etag: '"e"', "berth-request-id": "r2" });
    response.end('{"path":"/a","size":5}');
  });
  const sandbox = berthAt(server.url).sandbox("a".repeat(24));
  async function* parts() {
    yield new TextEncoder().encode("hel");
    yield new TextEncoder().encode("lo");
  }
  await sandbox.files.write("a", { stream: parts(), bytes: 5 });
  await sandbox.files.write("a", new Uint8Array([104, 105]));
  await sandbox.metadata.patch({ a: "b" }).catch(() => {});
  expect(bodies.map((body) => body.replace(/^\w+ /, ""))).toEqual(["hello", "hi", '{"a":"b"}']);
  const missing = berthAt(`${server.url}/missing`).sandbox("a".repeat(24));
  await expect(missing.get()).rejects.toMatchObject({ code: "not_found", requestId: "r1" });
});

it("[CL42] says whether a call may have arrived, and ends with its signal", async () => {
  using server = await serve((request, response) => {
    if (request.method === "POST") request.socket.destroy();
    else if (request.url?.includes("/processes")) response.write("{");
  });
  const sandbox = berthAt(server.url).sandbox("a".repeat(24));
  const failed = { code: "operation_interrupted", facts: { admitted: "unknown" } };
  await expect(sandbox.exec("true")).rejects.toMatchObject(failed);
  const controller = new AbortController();
  const listing = sandbox.processes.list({ signal: controller.signal });
  setImmediate(() => controller.abort(new Error("enough")));
  await expect(listing).rejects.toThrow("enough");
  const nobody = berthAt("http://127.0.0.1:1").sandbox("a".repeat(24));
  await expect(nobody.exec("true")).rejects.toMatchObject({ code: "unavailable" });
});
