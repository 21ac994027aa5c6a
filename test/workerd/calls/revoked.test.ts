import { evictDurableObject, runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { describe, expect, it } from "vitest";
import { agentProtocolWithRevocation } from "../../../src/protocol/internal/agent-wire.ts";
import { type Right, rights } from "../../../src/protocol/rights.ts";
import { eventually } from "../../contract/sandbox/world.ts";
import { call, createSandbox, json } from "../calls.ts";
import { containerOf } from "../container.ts";
import { stubOf } from "../world.ts";

const of = (id: string, tail = "") => `/v1/sandboxes/${id}${tail}`;
const revokeRequest = "POST /v1/revoked";
const connecting = "GET /v1/terminals/one/connect";

const tokenOf = async (id: string, list: readonly Right[] = rights) =>
  String((await json(call("POST", of(id, "/tokens"), { body: { rights: list } }))).token);
const ticketOf = async (id: string, key?: string) =>
  String((await json(call("POST", of(id, "/tickets"), key === undefined ? {} : { key }))).ticket);
const revoke = async (id: string) => {
  expect((await call("DELETE", of(id, "/tokens"))).status).toBe(204);
};

async function withTerminal(): Promise<string> {
  const id = await createSandbox();
  await json(call("POST", of(id, "/terminals"), { body: { id: "one" } }));
  return id;
}

class Socket {
  readonly frames: Record<string, unknown>[] = [];
  readonly socket: WebSocket;
  closed: { code: number; reason: string } | undefined;

  constructor({ status, webSocket }: Response) {
    expect(status).toBe(101);
    this.socket = webSocket as WebSocket;
    this.socket.accept();
    this.socket.binaryType = "arraybuffer";
    this.socket.addEventListener("message", ({ data }) => {
      if (typeof data === "string") this.frames.push(JSON.parse(data));
    });
    this.socket.addEventListener("close", ({ code, reason }) => {
      this.closed = { code, reason };
    });
  }

  async ends(): Promise<void> {
    await eventually(async () => expect(this.closed).toEqual({ code: 4401, reason: "revoked" }));
  }

  types(): string[] {
    return this.frames.map(({ type }) => String(type));
  }
}

/** With a key or a token; with a ticket if `null`. */
const connect = (id: string, tail: string, key?: string | null) =>
  call("GET", of(id, tail), {
    headers: { upgrade: "websocket" },
    ...(key === undefined ? {} : { key }),
  });
const terminal = "/terminals/one/connect";
const lease = (holder: string) => `/lease/connect?holder=${holder}`;
const viewers = async (id: string) => (await json(call("GET", of(id, "/terminals/one")))).viewers;

/** Waits until the agent has confirmed the revocation, after which its sockets are closed. */
const isTold = (id: string) =>
  eventually(async () => {
    const revoking = await runInDurableObject(stubOf(id), (_object, state) => {
      return state.storage.sql.exec("SELECT revoking FROM sandbox").one().revoking;
    });
    expect(revoking).toBeNull();
  });

/** Reads to the end and returns how it ended. */
async function endOf(reader: ReadableStreamDefaultReader): Promise<"closed" | "broken"> {
  try {
    while (!(await reader.read()).done);
    return "closed";
  } catch {
    return "broken";
  }
}

describe("when tokens are revoked", () => {
  it("[SC22] terminals opened by a token or its ticket close; those of a key stay open", async () => {
    const id = await withTerminal();
    const token = await tokenOf(id);
    const [byToken, byTicket, byKey, byItsTicket] = [
      new Socket(await connect(id, terminal, token)),
      new Socket(await connect(id, `${terminal}?ct=${await ticketOf(id, token)}`, null)),
      new Socket(await connect(id, terminal)),
      new Socket(await connect(id, `${terminal}?ct=${await ticketOf(id)}`, null)),
    ];
    expect(await viewers(id)).toBe(4);
    await revoke(id);
    await Promise.all([byToken.ends(), byTicket.ends()]);
    expect(await viewers(id)).toBe(2);
    expect([byKey.closed, byItsTicket.closed]).toEqual([undefined, undefined]);
    expect((await connect(id, terminal, token)).status).toBe(401);
    const later = new Socket(await connect(id, terminal, await tokenOf(id)));
    expect(await viewers(id)).toBe(3);
    for (const item of [byKey, byItsTicket, later]) item.socket.close(1000);
    await eventually(async () => expect(await viewers(id)).toBe(0));
  });

  it("[SC22] a token's connection loses its lease or place in the queue; a key's keeps them", async () => {
    const id = await createSandbox();
    const token = await tokenOf(id);
    const holder = new Socket(await connect(id, lease("stolen"), token));
    await eventually(async () => expect(holder.types()).toContain("granted"));
    const waiting = new Socket(await connect(id, lease("waiting"), token));
    const byKey = new Socket(await connect(id, lease("mine")));
    await eventually(async () =>
      expect([...waiting.types(), ...byKey.types()]).toEqual(["queued", "queued"]),
    );
    await revoke(id);
    await Promise.all([holder.ends(), waiting.ends()]);
    expect(holder.frames.at(-1)).toMatchObject({ type: "lost", reason: "revoked" });
    expect(waiting.frames.at(-1)).toMatchObject({ type: "error", code: "unauthenticated" });
    await eventually(async () => expect(byKey.types()).toEqual(["queued", "granted"]));
    expect(await json(call("GET", of(id, "/lease")))).toMatchObject({
      ...{ state: "held", holder: "mine", waiterCount: 0 },
    });
    await revoke(id);
    expect(byKey.closed).toBeUndefined();
    const { events } = await json(call("GET", of(id, "/events?limit=1000")));
    expect(events.map(({ event }: { event: unknown }) => event)).toContainEqual(
      expect.objectContaining({ type: "lease", what: "lost", holder: "stolen", reason: "revoked" }),
    );
    byKey.socket.close(1000);
  });

  it("[SC22] a call that waits for the lease with a token is granted nothing, and leaves the queue", async () => {
    const id = await createSandbox();
    const token = await tokenOf(id);
    const ask = (body: object, key?: string) =>
      call("POST", of(id, "/lease"), { body, ...(key === undefined ? {} : { key }) });
    const held = await json(ask({ holder: "first" }));
    const stolen = ask({ holder: "stolen", waitMs: 20_000 }, token);
    const waiterCount = async () => (await json(call("GET", of(id, "/lease")))).waiterCount;
    await eventually(async () => expect(await waiterCount()).toBe(1));
    const mine = ask({ holder: "mine", waitMs: 20_000 });
    await eventually(async () => expect(await waiterCount()).toBe(2));
    await revoke(id);
    const headers = { "berth-lease": held.token };
    expect((await call("DELETE", of(id, "/lease"), { headers })).status).toBe(200);
    expect((await stolen).status).toBe(401);
    expect(await json(mine)).toMatchObject({ holder: "mine" });
  });

  it("[SC22] hibernating lease sockets end when the object wakes", async () => {
    const id = await createSandbox();
    const holder = new Socket(await connect(id, lease("stolen"), await tokenOf(id)));
    await eventually(async () => expect(holder.types()).toContain("granted"));
    await evictDurableObject(stubOf(id), { webSockets: "hibernate" });
    await revoke(id);
    await holder.ends();
    await eventually(async () =>
      expect(await json(call("GET", of(id, "/lease")))).toMatchObject({ state: "free" }),
    );
  });

  it("[SC22] streams of a token break off, those of a key continue", async () => {
    const id = await createSandbox();
    const token = await tokenOf(id);
    const body = { command: "echo begun; sleep 1000" };
    const { id: process } = await json(call("POST", of(id, "/processes"), { body }));
    const logs = `/processes/${process}/logs?follow=1`;
    const events = ["/events?follow=1", logs, "/files/watch?path=/workspace"];
    const paths = [
      ...events.map((path) => [path, "text/event-stream"] as const),
      [`${logs}&stream=stdout`, "application/octet-stream"] as const,
    ];
    const streams = (key?: string) =>
      Promise.all(
        paths.map(([path, accept]) =>
          call("GET", of(id, path), { headers: { accept }, ...(key === undefined ? {} : { key }) }),
        ),
      );
    const [stolen, mine] = [await streams(token), await streams()];
    expect([...stolen, ...mine].map(({ status }) => status)).toEqual(Array(8).fill(200));
    const readers = (all: Response[]) =>
      all.map(({ body }) => (body as ReadableStream<Uint8Array>).getReader());
    const ends = readers(stolen).map(endOf);
    const others = readers(mine);
    let ended = 0;
    const otherEnds = others.map((item) => endOf(item).finally(() => ended++));
    await revoke(id);
    expect(await Promise.all(ends)).toEqual(Array(4).fill("broken"));
    expect(ended).toBe(0);
    await Promise.all(others.map((item) => item.cancel()));
    await Promise.all(otherEnds);
  });

  it("[SC22] a call that still waits for the lease does not start", async () => {
    const id = await createSandbox();
    const token = await tokenOf(id);
    const held = await json(call("POST", of(id, "/lease"), { body: { holder: "one" } }));
    const headers = { "berth-wait-ms": "20000" };
    const waiting = call("POST", of(id, "/exec"), {
      ...{ key: token, headers, body: { command: "echo stolen" } },
    });
    await eventually(async () =>
      expect((await json(call("GET", of(id, "/lease")))).waiterCount).toBe(1),
    );
    await revoke(id);
    await json(
      call("DELETE", of(id, "/lease"), { headers: { "berth-lease": String(held.token) } }),
    );
    const answer = await waiting;
    expect([answer.status, (await json(answer)).error.code]).toEqual([401, "unauthenticated"]);
    expect((await containerOf(id).facts()).ran).not.toContain("echo stolen");
    expect((await json(call("GET", of(id, "/lease")))).state).toBe("free");
  });

  it("[SC23] a socket that was checked before and arrives after is refused", async () => {
    const id = await withTerminal();
    const token = await tokenOf(id);
    const inside = containerOf(id);
    await inside.holdRequests(connecting);
    const late = connect(id, terminal, token);
    await eventually(async () => expect((await inside.facts()).requests).toContain(connecting));
    await revoke(id);
    await eventually(async () => expect((await inside.facts()).generation).toBe(1));
    await inside.releaseHeld();
    const refused = await late;
    expect([refused.status, refused.webSocket]).toEqual([401, null]);
    expect((await json(refused)).error.code).toBe("unauthenticated");
    expect(await viewers(id)).toBe(0);
  });

  it("[SC23] a socket that was admitted before and opens after is closed", async () => {
    const id = await withTerminal();
    const inside = containerOf(id);
    await inside.holdResponses(connecting);
    const late = connect(id, terminal, await tokenOf(id));
    await eventually(async () => expect(await viewers(id)).toBe(1));
    await revoke(id);
    await eventually(async () => expect(await viewers(id)).toBe(0));
    await inside.releaseHeld();
    await new Socket(await late).ends();
  });

  it("[SC23] a revocation is sent again until the agent has confirmed it", async () => {
    const id = await withTerminal();
    const stolen = new Socket(await connect(id, terminal, await tokenOf(id)));
    const inside = containerOf(id);
    await inside.failRequests(revokeRequest);
    await revoke(id);
    const tries = async () =>
      (await inside.facts()).requests.filter((line) => line === revokeRequest).length;
    await eventually(async () => expect(await tries()).toBeGreaterThan(1));
    expect(stolen.closed).toBeUndefined();
    await inside.failRequests(null);
    await stolen.ends();
    expect((await inside.facts()).generation).toBe(1);
    await isTold(id);
    const before = await tries();
    await evictDurableObject(stubOf(id));
    await json(call("GET", of(id)));
    await runDurableObjectAlarm(stubOf(id));
    expect(await tries()).toBe(before);
  });

  it("[SC23] an old agent, which could not close it again, gets no socket of a token", async () => {
    const id = await withTerminal();
    await containerOf(id).setProtocol(agentProtocolWithRevocation - 1);
    const token = await tokenOf(id);
    const refused = await connect(id, terminal, token);
    expect([refused.status, refused.webSocket]).toEqual([501, null]);
    expect((await json(refused)).error.code).toBe("unsupported");
    await eventually(async () => expect(await viewers(id)).toBe(0));
    const byKey = new Socket(await connect(id, terminal));
    expect(await viewers(id)).toBe(1);
    byKey.socket.close(1000);
  });

  it("[SC23] an incarnation that ended gets no revocation, and neither does the next one", async () => {
    const id = await withTerminal();
    const inside = containerOf(id);
    await inside.failRequests(revokeRequest);
    await revoke(id);
    await inside.exit();
    await inside.failRequests(null);
    // A command at the moment of the exit may have run: it is interrupted, and nothing is started for it.
    await eventually(async () => expect((await json(call("GET", of(id)))).state).toBe("failed"));
    const { stdout } = await json(call("POST", of(id, "/exec"), { body: { command: "echo on" } }));
    expect(stdout).toBe("on\n");
    await eventually(async () => expect((await inside.facts()).starts).toHaveLength(2));
    await isTold(id);
    const before = (await inside.facts()).requests.filter((line) => line === revokeRequest).length;
    await runDurableObjectAlarm(stubOf(id));
    expect((await inside.facts()).requests.filter((line) => line === revokeRequest)).toHaveLength(
      before,
    );
    expect((await connect(id, terminal, await tokenOf(id))).status).toBe(404);
  });
});
