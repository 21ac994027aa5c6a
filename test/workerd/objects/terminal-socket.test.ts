import { evictDurableObject } from "cloudflare:test";
import { afterEach, describe, expect, it, vi } from "vitest";
import { limits } from "../../../src/protocol/limits.ts";
import { eventually } from "../../contract/sandbox/world.ts";
import * as api from "../api.ts";
import { call, createSandbox, json, keys, pathOf, refusal, stubOf, upgrade } from "../calls.ts";
import { containerOf } from "../container.ts";
import { FrameSocket } from "../frame-socket.ts";

const framed = "berth.terminal.v1";

async function terminalOf(id: string, terminal = "mine"): Promise<void> {
  const body = { id: terminal };
  expect(await api.request("POST", id, "/terminals", body)).toMatchObject({ id: terminal });
}

const open = (id: string, tail: string, options: Parameters<typeof call>[2] = {}) =>
  call("GET", pathOf(id, tail), { ...options, headers: { ...upgrade, ...options.headers } });

async function close(socket: FrameSocket): Promise<void> {
  socket.close();
  await socket.ends();
}

afterEach(() => vi.useRealTimers());

describe("the WebSocket of a terminal", () => {
  it("[U10] carries bytes both ways, plain or framed, and its protocol is passed on", async () => {
    const id = await createSandbox();
    await terminalOf(id);
    const first = await open(id, "/terminals/mine/connect");
    expect([first.status, first.headers.get("sec-websocket-protocol")]).toEqual([101, null]);
    const plain = new FrameSocket(first);
    plain.socket.send("echo hello\r");
    await plain.shows("hello");

    const second = await open(id, "/terminals/mine/connect?after=0", {
      headers: { "sec-websocket-protocol": framed },
    });
    expect(second.headers.get("sec-websocket-protocol")).toBe(framed);
    const other = new FrameSocket(second);
    await other.shows("hello");
    expect(other.frames[0]).toMatchObject({ type: "ready", offset: 0 });
    const size = { cols: 100, rows: 30 };
    expect(await json(call("PATCH", pathOf(id, "/terminals/mine"), { body: size }))).toMatchObject(
      size,
    );
    await eventually(async () => expect(other.frames).toContainEqual({ type: "resize", ...size }));

    expect((await api.request("GET", id, "/terminals/mine")).viewers).toBe(2);
    await close(plain);
    other.socket.send(new TextEncoder().encode("exit\r"));
    await eventually(async () => expect(other.closed?.code).toBe(1000));
    expect(other.frames.at(-1)).toMatchObject({ type: "exit" });
    expect((await call("GET", pathOf(id, "/terminals/mine"))).status).toBe(404);
  });

  it("[U11] is refused before the upgrade if there is no such terminal, and creates nothing", async () => {
    const id = await createSandbox();
    await terminalOf(id);
    const before = await api.facts(id);
    const path = "/terminals/mine/connect";
    expect(await refusal(call("GET", pathOf(id, path)))).toEqual([426, "upgrade_required"]);
    for (const origin of ["https://evil.test", "null", "https://berth.test"]) {
      const answer = open(id, path, { headers: { origin } });
      expect(await refusal(answer), origin).toEqual([403, "forbidden"]);
    }
    expect(await refusal(open(id, path, { key: null }))).toEqual([401, "unauthenticated"]);
    const reader = await api.makeToken(id, ["read", "lease", "exec"]);
    expect(await refusal(open(id, path, { key: reader }))).toEqual([403, "forbidden"]);
    expect(await refusal(open(id, path, { key: keys.other }))).toEqual([404, "not_found"]);
    for (const query of ["?mode=painter", "?after=-1", "?after=x", "?colour=red"]) {
      expect(await refusal(open(id, `${path}${query}`))).toEqual([400, "bad_request"]);
    }
    expect(await api.facts(id)).toEqual(before);

    expect(await refusal(open(id, "/terminals/nobodys/connect"))).toEqual([404, "not_found"]);
    expect((await api.request("GET", id, "/terminals")).terminals).toHaveLength(1);
    await api.request("POST", id, "/pause");
    expect(await refusal(open(id, path))).toEqual([404, "not_found"]);
    await api.request("DELETE", id);
    expect(await refusal(open(id, path))).toEqual([410, "sandbox_destroyed"]);
  });

  it("[U11] opens for an allowed page, and with the right to terminals only", async () => {
    const id = await createSandbox();
    await terminalOf(id);
    const key = await api.makeToken(id, ["terminal"]);
    const headers = { origin: "http://berth.test" };
    const socket = new FrameSocket(await open(id, "/terminals/mine/connect", { key, headers }));
    socket.socket.send("echo mine\r");
    await socket.shows("mine");
    await close(socket);
  });

  it("[U12] opens for a connect ticket once, whose protocol is not passed on", async () => {
    const id = await createSandbox();
    await terminalOf(id);
    const ticket = await api.makeTicket(id);
    const headers = { "sec-websocket-protocol": `berth.ticket.${ticket}, ${framed}` };
    const path = "/terminals/mine/connect";
    const first = await open(id, path, { key: null, headers });
    expect(first.headers.get("sec-websocket-protocol")).toBe(framed);
    const socket = new FrameSocket(first);
    await eventually(async () => expect(socket.frames[0]).toMatchObject({ type: "ready" }));
    expect(await refusal(open(id, path, { key: null, headers }))).toEqual([401, "unauthenticated"]);
    const queried = await open(id, `${path}?ct=${await api.makeTicket(id)}&mode=viewer`, {
      key: null,
    });
    await close(new FrameSocket(queried));
    await close(socket);
    const late = await api.makeTicket(id);
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + limits.connectTicketMs });
    const expired = open(id, `${path}?ct=${late}`, { key: null });
    expect(await refusal(expired)).toEqual([401, "unauthenticated"]);
  });

  it("[U14] selects the ticket as protocol if nothing else is offered, because browsers demand a choice", async () => {
    const id = await createSandbox();
    await terminalOf(id);
    const paths = ["/terminals/mine/connect", "/lease/connect"];
    for (const path of paths) {
      const offered = `berth.ticket.${await api.makeTicket(id)}`;
      const headers = { "sec-websocket-protocol": offered };
      const opened = await open(id, path, { key: null, headers });
      expect([opened.status, opened.headers.get("sec-websocket-protocol")]).toEqual([101, offered]);
      const socket = new FrameSocket(opened);
      // It works as always.
      await eventually(async () =>
        expect(socket.output.length + socket.frames.length).toBeGreaterThan(0),
      );
      socket.socket.close();
      const repeated = await open(id, path, { key: null, headers });
      expect(repeated.headers.get("sec-websocket-protocol")).toBeNull();
      expect(await refusal(repeated)).toEqual([401, "unauthenticated"]);
    }
  });

  it("[U12] gives a connect ticket the rights of its maker, and no more", async () => {
    const id = await createSandbox();
    await terminalOf(id);
    const [terminal, lease] = ["/terminals/mine/connect", "/lease/connect"];
    const enter = async (tail: string, ticket: string) =>
      open(id, `${tail}?ct=${ticket}`, { key: null });
    const viewers = await api.makeTicket(id, await api.makeToken(id, ["terminal"]));
    const holders = await api.makeTicket(id, await api.makeToken(id, ["lease"]));
    expect(await refusal(enter(lease, viewers))).toEqual([403, "forbidden"]);
    expect(await refusal(enter(terminal, holders))).toEqual([403, "forbidden"]);
    expect(await api.getLease(id)).toMatchObject({ state: "free" });
    // A refused ticket is not used up.
    await close(new FrameSocket(await enter(terminal, viewers)));
    const holder = new FrameSocket(await enter(lease, holders));
    await eventually(async () => expect(holder.frames.at(-1)).toMatchObject({ type: "granted" }));
    holder.socket.close();
    const neither = await call("POST", pathOf(id, "/tickets"), {
      key: await api.makeToken(id, ["exec"]),
    });
    expect(await json(neither)).toMatchObject({
      error: { code: "forbidden", right: ["lease", "terminal"] },
    });
  });

  it("[U13] ends with the container of its terminal", async () => {
    const id = await createSandbox();
    await terminalOf(id);
    const socket = new FrameSocket(await open(id, "/terminals/mine/connect"));
    socket.socket.send("echo there\r");
    await socket.shows("there");
    await containerOf(id).exit();
    await socket.ends();
    await evictDurableObject(stubOf(id));
    expect(await refusal(open(id, "/terminals/mine/connect"))).toEqual([404, "not_found"]);
    expect((await api.facts(id)).starts).toHaveLength(1);
  });
});
