import { evictDurableObject, runDurableObjectAlarm } from "cloudflare:test";
import { describe, expect, it } from "vitest";
import { agentProtocolWithRevocation } from "../../../src/protocol/internal/agent-wire.ts";
import { rights } from "../../../src/protocol/rights.ts";
import { eventually } from "../../contract/sandbox/world.ts";
import * as api from "../api.ts";
import { call, createSandbox, keys, pathOf, refusal, stubOf, upgrade } from "../calls.ts";
import { containerOf } from "../container.ts";
import { FrameSocket } from "../frame-socket.ts";

const revokeRequest = "POST /v1/revoked";
const connecting = "GET /v1/terminals/one/connect";

const tokenOf = (id: string) => api.makeToken(id, rights);
const revoke = async (id: string) => {
  expect((await call("DELETE", pathOf(id, "/tokens"))).status).toBe(204);
};

const untilWaiting = (id: string, count: number) =>
  eventually(async () => expect((await api.getLease(id)).waiterCount).toBe(count));

async function withTerminal(): Promise<string> {
  const id = await createSandbox();
  await api.request("POST", id, "/terminals", { id: "one" });
  return id;
}

async function endsRevoked(socket: FrameSocket): Promise<void> {
  await socket.ends();
  expect(socket.closed).toEqual({ code: 4401, reason: "revoked" });
}

/** With a key or a token; with a ticket if `null`. */
const connect = (id: string, tail: string, key: string | null = keys.local) =>
  call("GET", pathOf(id, tail), { headers: upgrade, key });
const terminal = "/terminals/one/connect";
const lease = (holder: string) => `/lease/connect?holder=${holder}`;
const viewers = async (id: string) => (await api.request("GET", id, "/terminals/one")).viewers;

/** Waits until the agent has confirmed the revocation, after which its sockets are closed. */
const untilConfirmed = (id: string) =>
  eventually(async () => {
    expect(await api.runSql(stubOf(id), "SELECT revoking FROM sandbox")).toEqual([
      { revoking: null },
    ]);
  });

const tries = async (id: string) =>
  (await api.facts(id)).requests.filter((line) => line === revokeRequest).length;

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
      new FrameSocket(await connect(id, terminal, token)),
      new FrameSocket(await connect(id, `${terminal}?ct=${await api.makeTicket(id, token)}`, null)),
      new FrameSocket(await connect(id, terminal)),
      new FrameSocket(await connect(id, `${terminal}?ct=${await api.makeTicket(id)}`, null)),
    ];
    expect(await viewers(id)).toBe(4);
    await revoke(id);
    await Promise.all([byToken, byTicket].map(endsRevoked));
    expect(await viewers(id)).toBe(2);
    expect([byKey.closed, byItsTicket.closed]).toEqual([undefined, undefined]);
    expect((await connect(id, terminal, token)).status).toBe(401);
    const later = new FrameSocket(await connect(id, terminal, await tokenOf(id)));
    expect(await viewers(id)).toBe(3);
    for (const item of [byKey, byItsTicket, later]) item.socket.close(1000);
    await eventually(async () => expect(await viewers(id)).toBe(0));
  });

  it("[SC22] a token's connection loses its lease or place in the queue; a key's keeps them", async () => {
    const id = await createSandbox();
    const token = await tokenOf(id);
    const holder = new FrameSocket(await connect(id, lease("stolen"), token));
    await holder.next("granted");
    const waiting = new FrameSocket(await connect(id, lease("waiting"), token));
    const byKey = new FrameSocket(await connect(id, lease("mine")));
    await eventually(async () =>
      expect([...waiting.types(), ...byKey.types()]).toEqual(["queued", "queued"]),
    );
    await revoke(id);
    await Promise.all([holder, waiting].map(endsRevoked));
    expect(holder.frames.at(-1)).toMatchObject({ type: "lost", reason: "revoked" });
    expect(waiting.frames.at(-1)).toMatchObject({ type: "error", code: "unauthenticated" });
    await eventually(async () => expect(byKey.types()).toEqual(["queued", "granted"]));
    expect(await api.getLease(id)).toMatchObject({
      ...{ state: "held", holder: "mine", waiterCount: 0 },
    });
    await revoke(id);
    expect(byKey.closed).toBeUndefined();
    expect(await api.events(id)).toContainEqual(
      expect.objectContaining({ type: "lease", what: "lost", holder: "stolen", reason: "revoked" }),
    );
    byKey.socket.close(1000);
  });

  it("[SC22] a call that waits for the lease with a token is granted nothing, and leaves the queue", async () => {
    const id = await createSandbox();
    const token = await tokenOf(id);
    const held = await api.acquireLease(id, { holder: "first" });
    const body = { holder: "stolen", waitMs: 20_000 };
    const stolen = call("POST", pathOf(id, "/lease"), { body, key: token });
    await untilWaiting(id, 1);
    const mine = api.acquireLease(id, { holder: "mine", waitMs: 20_000 });
    await untilWaiting(id, 2);
    await revoke(id);
    await api.releaseLease(id, held.token);
    expect((await stolen).status).toBe(401);
    expect(await mine).toMatchObject({ holder: "mine" });
  });

  it("[SC22] hibernating lease sockets end when the object wakes", async () => {
    const id = await createSandbox();
    const holder = new FrameSocket(await connect(id, lease("stolen"), await tokenOf(id)));
    await holder.next("granted");
    await evictDurableObject(stubOf(id), { webSockets: "hibernate" });
    await revoke(id);
    await endsRevoked(holder);
    await eventually(async () => expect(await api.getLease(id)).toMatchObject({ state: "free" }));
  });

  it("[SC22] streams of a token break off, those of a key continue", async () => {
    const id = await createSandbox();
    const token = await tokenOf(id);
    const body = { command: "echo begun; sleep 1000" };
    const { id: process } = await api.request("POST", id, "/processes", body);
    const logs = `/processes/${process}/logs?follow=1`;
    const events = ["/events?follow=1", logs, "/files/watch?path=/workspace"];
    const paths = [
      ...events.map((path) => [path, "text/event-stream"] as const),
      [`${logs}&stream=stdout`, "application/octet-stream"] as const,
    ];
    const streams = (key: string) =>
      Promise.all(
        paths.map(([path, accept]) => call("GET", pathOf(id, path), { headers: { accept }, key })),
      );
    const [stolen, mine] = [await streams(token), await streams(keys.local)];
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
    const held = await api.acquireLease(id, { holder: "one" });
    const headers = { "berth-wait-ms": "20000" };
    const waiting = call("POST", pathOf(id, "/exec"), {
      ...{ key: token, headers, body: { command: "echo stolen" } },
    });
    await untilWaiting(id, 1);
    await revoke(id);
    await api.releaseLease(id, held.token);
    expect(await refusal(waiting)).toEqual([401, "unauthenticated"]);
    expect((await api.facts(id)).ran).not.toContain("echo stolen");
    expect((await api.getLease(id)).state).toBe("free");
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
    expect(await refusal(late)).toEqual([401, "unauthenticated"]);
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
    await endsRevoked(new FrameSocket(await late));
  });

  it("[SC23] a revocation is sent again until the agent has confirmed it", async () => {
    const id = await withTerminal();
    const stolen = new FrameSocket(await connect(id, terminal, await tokenOf(id)));
    const inside = containerOf(id);
    await inside.failRequests(revokeRequest);
    await revoke(id);
    await eventually(async () => expect(await tries(id)).toBeGreaterThan(1));
    expect(stolen.closed).toBeUndefined();
    await inside.failRequests(null);
    await endsRevoked(stolen);
    expect((await inside.facts()).generation).toBe(1);
    await untilConfirmed(id);
    const before = await tries(id);
    await evictDurableObject(stubOf(id));
    await api.get(id);
    await runDurableObjectAlarm(stubOf(id));
    expect(await tries(id)).toBe(before);
  });

  it("[SC23] an old agent, which could not close it again, gets no socket of a token", async () => {
    const id = await withTerminal();
    await containerOf(id).setProtocol(agentProtocolWithRevocation - 1);
    const token = await tokenOf(id);
    expect(await refusal(connect(id, terminal, token))).toEqual([501, "unsupported"]);
    await eventually(async () => expect(await viewers(id)).toBe(0));
    const byKey = new FrameSocket(await connect(id, terminal));
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
    await eventually(async () => expect(await api.state(id)).toBe("failed"));
    const { stdout } = await api.request("POST", id, "/exec", { command: "echo on" });
    expect(stdout).toBe("on\n");
    await eventually(async () => expect((await inside.facts()).starts).toHaveLength(2));
    await untilConfirmed(id);
    const before = await tries(id);
    await runDurableObjectAlarm(stubOf(id));
    expect(await tries(id)).toBe(before);
    expect((await connect(id, terminal, await tokenOf(id))).status).toBe(404);
  });
});
