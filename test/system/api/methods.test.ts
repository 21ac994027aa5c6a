/** Tests what a running server responds to the methods that are no verb: HEAD and CONNECT. */
import { describe, expect, it } from "vitest";
import { raw } from "../../security/sockets.ts";
import { sharedServerOfFile } from "../shared-server.ts";

const server = await sharedServerOfFile();
const authorization = `Bearer ${server.key}`;
/** More than any stream has places for readers. */
const headCount = 120;
/** Longer than any machine takes to close a connection. */
const closesWithinMs = 30_000;

describe("HEAD", () => {
  it.each([
    ["the events of a sandbox", "/events?follow=1"],
    ["the events of a tenant", "events?follow=1"],
    ["the log of a process", "/processes/PROCESS/logs?follow=1"],
    ["the changes of a folder", "/files/watch"],
  ])(
    "[W14] of %s opens no stream: after any number of them a reader follows at once",
    async (_, tail) => {
      const id = await server.create();
      const program = { command: "sleep 600", name: "sleeper" };
      const started = await server.call("POST", `/v1/sandboxes/${id}/processes`, program);
      const path = tail.startsWith("/")
        ? `/v1/sandboxes/${id}${tail.replace("PROCESS", String(started.body.id))}`
        : `/v1/${tail}`;
      const send = (method: string) =>
        fetch(`${server.url}${path}`, { method, headers: { authorization } });
      const heads = await Promise.all(Array.from({ length: headCount }, () => send("HEAD")));
      for (const { status, headers } of heads) {
        expect([status, headers.get("content-type")]).toEqual([200, "text/event-stream"]);
      }
      const follower = await send("GET");
      expect([follower.status, follower.headers.get("content-type")]).toEqual([
        ...[200, "text/event-stream"],
      ]);
      await follower.body?.cancel();
      expect((await server.call("DELETE", `/v1/sandboxes/${id}`)).status).toBe(200);
    },
  );
});

/** workerd itself refuses CONNECT, before the Worker sees it, so status and body are workerd's. */
describe("CONNECT", () => {
  it.each([["/v1/sandboxes"], ["/v1/sandboxes/k3v9q2m7x1c5b8n4tq0w8e2r"], ["127.0.0.1:PORT"]])(
    "[SC10] to %s opens nothing: it is refused, and the connection is closed",
    async (target) => {
      const { host, port } = new URL(server.url);
      const inner = `GET /health HTTP/1.1\r\nHost: ${host}\r\n\r\n`;
      const head = [
        `CONNECT ${target.replace("PORT", port)} HTTP/1.1`,
        ...[`Host: ${host}`, `Authorization: ${authorization}`, "", inner],
      ].join("\r\n");
      const { status, text, closed } = await raw(server.url, head, closesWithinMs);
      expect([status >= 400, closed], text).toEqual([true, true]);
      expect(text.match(/HTTP\/1\.1/g)).toHaveLength(1);
      expect((await server.call("GET", "/health")).status).toBe(200);
    },
  );
});
