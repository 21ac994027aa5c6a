/** A stolen token whose connections are open when it is revoked, and a key whose connections stay open. */
import { setTimeout as sleep } from "node:timers/promises";
import { beforeAll, describe, expect, it } from "vitest";
import { WebSocket } from "ws";
import { type BerthError, connect } from "../../src/client/index.ts";
import type { WebSocketConstructor } from "../../src/client/terminal/sockets.ts";
import { rights } from "../../src/protocol/rights.ts";
import { until } from "../until.ts";
import { Attacked } from "./attacked-server.ts";
import { closeOf, join } from "./sockets.ts";

describe("a stolen token that is revoked", () => {
  const berth = Attacked.shared();
  let id: string;

  beforeAll(async () => {
    id = await berth.create();
    await berth.ok("POST", of("/terminals"), { id: "main", argv: ["cat"] });
  });

  const of = (tail = "") => `/v1/sandboxes/${id}${tail}`;
  const urlOf = (tail: string) => `${berth.server.url}${of(tail)}`;
  const terminal = () => urlOf("/terminals/main/connect");
  const tokenOf = async () => String((await berth.ok("POST", of("/tokens"), { rights })).token);
  const revoke = () => berth.ok("DELETE", of("/tokens"));
  const bearer = (key: string) => ({ headers: { authorization: `Bearer ${key}` } });
  const leaseState = async () => (await berth.ok("GET", of("/lease"))).state;
  const viewers = async () => (await berth.ok("GET", of("/terminals/main"))).viewers;
  const opened = async (...asked: Parameters<typeof join>) => {
    const { status, socket } = await join(...asked);
    expect(status).toBe(101);
    return socket as WebSocket;
  };

  it("[SC22] terminals and leases that it opened, also by a ticket, close with 4401; a key's go on", async () => {
    const token = await tokenOf();
    const { ticket } = await berth.ok("POST", of("/tickets"), undefined, { key: token });
    const byTicket = await opened(`${terminal()}?ct=${ticket}`);
    const stolen = [await opened(terminal(), bearer(token)), byTicket];
    const lease = await opened(urlOf("/lease/connect?holder=thief"), bearer(token));
    const mine = await opened(terminal(), bearer(berth.server.key));
    let seen = "";
    mine.on("message", (data) => {
      seen += String(data);
    });
    const lost: string[] = [];
    lease.on("message", (data) => lost.push(String(data)));
    stolen[0]?.send("typed before\r");
    await until("it is typed", () => seen.includes("typed before"));
    await until("the lease is held", async () => (await leaseState()) === "held");
    const closes = stolen.map(closeOf);
    await revoke();
    expect(await Promise.all(closes)).toEqual([4401, 4401]);
    // Its close frame comes at once; the connection itself may take a while to end.
    await until("the lease's is closed", () => lease.readyState >= WebSocket.CLOSING);
    expect(lost.at(-1)).toMatch(/"lost".*"revoked"/);
    await until("the lease is free", async () => (await leaseState()) === "free");
    mine.send("mine continues\r");
    await until("the key's continues", () => seen.includes("mine continues"));
    expect(await viewers()).toBe(1);
    expect(await join(terminal(), bearer(token))).toMatchObject({ status: 401 });
    mine.close();
    await until("all are gone", async () => (await viewers()) === 0);
  });

  it("[SC23] of many that connect while it is revoked none stays", async () => {
    for (let round = 0; round < 4; round++) {
      const token = await tokenOf();
      const racing = Array.from({ length: 12 }, async (_, n) => {
        await sleep(n * 5);
        const { status, socket } = await join(terminal(), bearer(token));
        if (socket === undefined) return status;
        return socket.readyState === WebSocket.OPEN ? closeOf(socket) : 4401;
      });
      await sleep(15 + round * 10);
      await revoke();
      for (const end of await Promise.all(racing)) expect([401, 4401]).toContain(end);
      await until("none is left", async () => (await viewers()) === 0);
    }
  });

  it("[SC22] streams that it follows break off, and its command ends; a stream of a key continues", async () => {
    const token = await tokenOf();
    const body = { command: "echo begun; exec sleep 1000" };
    const process = String((await berth.ok("POST", of("/processes"), body)).id);
    const ask = (path: string, key: string, accept = "text/event-stream", init = {}) => {
      const headers = { ...bearer(key).headers, accept, "content-type": "application/json" };
      return fetch(urlOf(path), { ...init, headers });
    };
    const log = `/processes/${process}/logs?follow=1`;
    const command = JSON.stringify({ command: "exec sleep 987" });
    const stolen = await Promise.all([
      ask("/events?follow=1", token),
      ask(log, token),
      ask(`${log}&stream=stdout`, token, "application/octet-stream"),
      ask("/files/watch?path=/workspace", token),
      ask("/exec", token, "application/json", { method: "POST", body: command }),
    ]);
    expect(stolen.map(({ status }) => status)).toEqual(Array(5).fill(200));
    const ofKey = await ask(log, berth.server.key);
    const readKey = ofKey.body?.getReader();
    await readKey?.read();
    const ends = Promise.allSettled(stolen.map((response) => response.text()));
    await revoke();
    expect((await ends).map((end) => end.status)).toEqual(Array(5).fill("rejected"));
    const countCommands = "grep -lz '^987$' /proc/[0-9]*/cmdline | wc -l";
    const runs = async () => (await berth.exec(id, { command: countCommands })).stdout.trim();
    await until("the command is ended", async () => (await runs()) === "0");
    await berth.ok("DELETE", of(`/processes/${process}`));
    let rest = "";
    for (;;) {
      const { done, value } = (await readKey?.read()) ?? { done: true, value: undefined };
      if (done) break;
      rest += new TextDecoder().decode(value);
    }
    expect(rest).toContain("event: exit");
  });

  it("[SC22] a download of its own is whole, and one that is under way breaks off before its length", async () => {
    const token = await tokenOf();
    await berth.exec(id, { command: "head -c 100000000 /dev/zero > big; echo small > small" });
    const get = (name: string) => fetch(urlOf(`/files?path=/workspace/${name}`), bearer(token));
    const small = await get("small");
    expect([small.headers.get("content-length"), await small.text()]).toEqual(["6", "small\n"]);
    const big = await get("big");
    expect(big.headers.get("content-length")).toBe("100000000");
    const reader = (big.body as ReadableStream<Uint8Array>).getReader();
    await reader.read();
    await revoke();
    const rest = async () => {
      while (!(await reader.read()).done);
    };
    await expect(rest()).rejects.toThrow();
  });

  it("[SC24] the SDK tells each of its own that the token is no good, and none comes back", async () => {
    const token = await tokenOf();
    const sdk = connect({
      url: berth.server.url,
      key: token,
      WebSocket: WebSocket as unknown as WebSocketConstructor,
    }).sandbox(id);
    const { id: process } = await berth.ok("POST", of("/processes"), { command: "sleep 1000" });
    const live = await sdk.terminal("main").attach();
    const lease = await sdk.lease.hold({ holder: "by a token" });
    const waiting = sdk.lease.hold({ holder: "behind it", waitMs: 600_000 }).then(
      () => "held",
      (error: BerthError) => error.code,
    );
    await until("one waits", async () => (await berth.ok("GET", of("/lease"))).waiterCount === 1);
    const codeOf = async (events: AsyncIterable<unknown>) => {
      try {
        for await (const _ of events);
        return "it ended";
      } catch (error) {
        return (error as BerthError).code;
      }
    };
    const ends = [live, sdk.process(String(process)).logs(), sdk.events(), sdk.files.watch()].map(
      codeOf,
    );
    await until("it watches", async () => (await viewers()) === 1);
    await revoke();
    expect(await Promise.all(ends)).toEqual(Array.from({ length: 4 }, () => "unauthenticated"));
    await until("the lease is lost", () => lease.signal.aborted);
    expect(lease.signal.reason).toMatchObject({ code: "lease_lost", facts: { reason: "revoked" } });
    expect(await waiting).toBe("unauthenticated");
    await berth.ok("DELETE", of(`/processes/${process}`));
    expect(await viewers()).toBe(0);
  });
});
