import { evictDurableObject } from "cloudflare:test";
import { afterEach, describe, expect, it, vi } from "vitest";
import { limits } from "../../../src/protocol/limits.ts";
import type { Right } from "../../../src/protocol/rights.ts";
import { eventually } from "../../contract/sandbox/world.ts";
import { call, createSandbox, json, keys } from "../calls.ts";
import { containerOf } from "../container.ts";
import { stubOf } from "../world.ts";

const of = (id: string, tail = "") => `/v1/sandboxes/${id}${tail}`;
const upgrade = { upgrade: "websocket" };
const framed = "berth.terminal.v1";

async function terminalOf(id: string, terminal = "mine"): Promise<void> {
  const body = { id: terminal };
  expect(await json(call("POST", of(id, "/terminals"), { body }))).toMatchObject({ id: terminal });
}

const open = (id: string, tail: string, options: Parameters<typeof call>[2] = {}) =>
  call("GET", of(id, tail), { ...options, headers: { ...upgrade, ...options.headers } });

/** A socket that records its frames. */
class TerminalSocket {
  readonly frames: Record<string, unknown>[] = [];
  readonly socket: WebSocket;
  output = "";
  closed: number | undefined;

  constructor({ webSocket }: Response) {
    if (webSocket === null) throw new Error("it is no WebSocket");
    this.socket = webSocket;
    webSocket.accept();
    webSocket.binaryType = "arraybuffer";
    webSocket.addEventListener("message", ({ data }) => {
      if (typeof data === "string") this.frames.push(JSON.parse(data));
      else this.output += new TextDecoder().decode(data as ArrayBuffer);
    });
    webSocket.addEventListener("close", ({ code }) => {
      this.closed = code;
    });
  }

  async shows(text: string): Promise<void> {
    await eventually(async () => expect(this.output).toContain(text));
  }

  async ends(): Promise<void> {
    this.socket.close(1000, "done");
    await eventually(async () => expect(this.closed).toBeDefined());
  }
}

const tokenOf = async (id: string, rights: Right[]) =>
  String((await json(call("POST", of(id, "/tokens"), { body: { rights } }))).token);
const ticketOf = async (id: string, key: string) =>
  String((await json(call("POST", of(id, "/tickets"), { key }))).ticket);
const refusal = async (response: Response) => {
  expect(response.webSocket).toBeNull();
  return [response.status, (await json(response)).error.code];
};

afterEach(() => vi.useRealTimers());

describe("the WebSocket of a terminal", () => {
  it("[U10] carries bytes both ways, plain or framed, and its protocol is passed on", async () => {
    const id = await createSandbox();
    await terminalOf(id);
    const first = await open(id, "/terminals/mine/connect");
    expect([first.status, first.headers.get("sec-websocket-protocol")]).toEqual([101, null]);
    const plain = new TerminalSocket(first);
    plain.socket.send("echo hello\r");
    await plain.shows("hello");

    const second = await open(id, "/terminals/mine/connect?after=0", {
      headers: { "sec-websocket-protocol": framed },
    });
    expect(second.headers.get("sec-websocket-protocol")).toBe(framed);
    const other = new TerminalSocket(second);
    await other.shows("hello");
    expect(other.frames[0]).toMatchObject({ type: "ready", offset: 0 });
    const size = { cols: 100, rows: 30 };
    expect(await json(call("PATCH", of(id, "/terminals/mine"), { body: size }))).toMatchObject(
      size,
    );
    await eventually(async () => expect(other.frames).toContainEqual({ type: "resize", ...size }));

    expect((await json(call("GET", of(id, "/terminals/mine")))).viewers).toBe(2);
    await plain.ends();
    other.socket.send(new TextEncoder().encode("exit\r"));
    await eventually(async () => expect(other.closed).toBe(1000));
    expect(other.frames.at(-1)).toMatchObject({ type: "exit" });
    expect((await call("GET", of(id, "/terminals/mine"))).status).toBe(404);
  });

  it("[U11] is refused before the upgrade if there is no such terminal, and creates nothing", async () => {
    const id = await createSandbox();
    await terminalOf(id);
    const before = await containerOf(id).facts();
    const path = "/terminals/mine/connect";
    expect(await refusal(await call("GET", of(id, path)))).toEqual([426, "upgrade_required"]);
    for (const origin of ["https://evil.test", "null", "https://berth.test"]) {
      const answer = await open(id, path, { headers: { origin } });
      expect(await refusal(answer), origin).toEqual([403, "forbidden"]);
    }
    expect(await refusal(await open(id, path, { key: null }))).toEqual([401, "unauthenticated"]);
    const reader = await tokenOf(id, ["read", "lease", "exec"]);
    expect(await refusal(await open(id, path, { key: reader }))).toEqual([403, "forbidden"]);
    const foreign = await open(id, path, { key: keys.other });
    expect(await refusal(foreign)).toEqual([404, "not_found"]);
    for (const query of ["?mode=painter", "?after=-1", "?after=x", "?colour=red"]) {
      expect(await refusal(await open(id, `${path}${query}`))).toEqual([400, "bad_request"]);
    }
    expect(await containerOf(id).facts()).toEqual(before);

    expect(await refusal(await open(id, "/terminals/nobodys/connect"))).toEqual([404, "not_found"]);
    expect((await json(call("GET", of(id, "/terminals")))).terminals).toHaveLength(1);
    await json(call("POST", of(id, "/pause")));
    expect(await refusal(await open(id, path))).toEqual([404, "not_found"]);
    await json(call("DELETE", of(id)));
    expect(await refusal(await open(id, path))).toEqual([410, "sandbox_destroyed"]);
  });

  it("[U11] opens for an allowed page, and with the right to terminals only", async () => {
    const id = await createSandbox();
    await terminalOf(id);
    const key = await tokenOf(id, ["terminal"]);
    const headers = { origin: "http://berth.test" };
    const socket = new TerminalSocket(await open(id, "/terminals/mine/connect", { key, headers }));
    socket.socket.send("echo mine\r");
    await socket.shows("mine");
    await socket.ends();
  });

  it("[U12] opens for a connect ticket once, whose protocol is not passed on", async () => {
    const id = await createSandbox();
    await terminalOf(id);
    const ticket = await ticketOf(id, keys.local);
    const headers = { "sec-websocket-protocol": `berth.ticket.${ticket}, ${framed}` };
    const path = "/terminals/mine/connect";
    const first = await open(id, path, { key: null, headers });
    expect(first.headers.get("sec-websocket-protocol")).toBe(framed);
    const socket = new TerminalSocket(first);
    await eventually(async () => expect(socket.frames[0]).toMatchObject({ type: "ready" }));
    const repeated = await open(id, path, { key: null, headers });
    expect(await refusal(repeated)).toEqual([401, "unauthenticated"]);
    const queried = await open(id, `${path}?ct=${await ticketOf(id, keys.local)}&mode=viewer`, {
      key: null,
    });
    await new TerminalSocket(queried).ends();
    await socket.ends();
    const late = await ticketOf(id, keys.local);
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + limits.connectTicketMs });
    const expired = await open(id, `${path}?ct=${late}`, { key: null });
    expect(await refusal(expired)).toEqual([401, "unauthenticated"]);
  });

  it("[U14] selects the ticket as protocol if nothing else is offered, because browsers demand a choice", async () => {
    const id = await createSandbox();
    await terminalOf(id);
    const paths = ["/terminals/mine/connect", "/lease/connect"];
    for (const path of paths) {
      const offered = `berth.ticket.${await ticketOf(id, keys.local)}`;
      const headers = { "sec-websocket-protocol": offered };
      const opened = await open(id, path, { key: null, headers });
      expect([opened.status, opened.headers.get("sec-websocket-protocol")]).toEqual([101, offered]);
      const socket = new TerminalSocket(opened);
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
    const viewers = await ticketOf(id, await tokenOf(id, ["terminal"]));
    const holders = await ticketOf(id, await tokenOf(id, ["lease"]));
    expect(await refusal(await enter(lease, viewers))).toEqual([403, "forbidden"]);
    expect(await refusal(await enter(terminal, holders))).toEqual([403, "forbidden"]);
    expect(await json(call("GET", of(id, "/lease")))).toMatchObject({ state: "free" });
    // A refused ticket is not used up.
    await new TerminalSocket(await enter(terminal, viewers)).ends();
    const holder = new TerminalSocket(await enter(lease, holders));
    await eventually(async () => expect(holder.frames.at(-1)).toMatchObject({ type: "granted" }));
    holder.socket.close();
    const neither = await call("POST", of(id, "/tickets"), { key: await tokenOf(id, ["exec"]) });
    expect(await json(neither)).toMatchObject({
      error: { code: "forbidden", right: ["lease", "terminal"] },
    });
  });

  it("[U13] ends with the container of its terminal", async () => {
    const id = await createSandbox();
    await terminalOf(id);
    const socket = new TerminalSocket(await open(id, "/terminals/mine/connect"));
    socket.socket.send("echo there\r");
    await socket.shows("there");
    await containerOf(id).exit();
    await eventually(async () => expect(socket.closed).toBeDefined());
    await evictDurableObject(stubOf(id));
    expect(await refusal(await open(id, "/terminals/mine/connect"))).toEqual([404, "not_found"]);
    expect((await containerOf(id).facts()).starts).toHaveLength(1);
  });
});
