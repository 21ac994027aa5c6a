import { evictDurableObject, runInDurableObject } from "cloudflare:test";
import { afterEach, describe, expect, it, vi } from "vitest";
import { agentPaths } from "../../../src/protocol/internal/agent.ts";
import { limits } from "../../../src/protocol/limits.ts";
import { eventually } from "../../contract/sandbox/world.ts";
import { call, createSandbox, json } from "../calls.ts";
import { containerOf } from "../container.ts";
import { overRest, stubOf } from "../world.ts";

type Frame = { type: string } & Record<string, unknown>;

const of = (id: string, tail = "") => `/v1/sandboxes/${id}${tail}`;
const leaseOf = (id: string) => json(call("GET", of(id, "/lease")));
const upgrade = { upgrade: "websocket" };

/** A socket that records its frames. */
class LeaseSocket {
  readonly frames: Frame[] = [];
  readonly pongs: string[] = [];
  readonly socket: WebSocket;
  closed: { code: number; reason: string } | undefined;

  constructor(socket: WebSocket) {
    this.socket = socket;
    socket.accept();
    socket.addEventListener("message", ({ data }) => {
      if (data === "pong") this.pongs.push(data);
      else this.frames.push(JSON.parse(String(data)));
    });
    socket.addEventListener("close", ({ code, reason }) => {
      this.closed = { code, reason };
    });
  }

  async next(type: string): Promise<Frame> {
    await eventually(async () => expect(this.frames.map((frame) => frame.type)).toContain(type));
    return this.frames.find((frame) => frame.type === type) as Frame;
  }

  close(): void {
    this.socket.close(1000, "done");
  }
}

async function connect(
  id: string,
  holder: string,
  headers: Record<string, string> = {},
): Promise<LeaseSocket> {
  const path = of(id, `/lease/connect?holder=${encodeURIComponent(holder)}`);
  const response = await call("GET", path, { headers: { ...upgrade, ...headers } });
  expect(response.status).toBe(101);
  return new LeaseSocket(response.webSocket as WebSocket);
}

/** The sockets that the object has, and a mark that only this instance of it carries. */
const inspect = (id: string) =>
  runInDurableObject(stubOf(id), (object, state) => {
    const marked = object as unknown as { mark?: number };
    const isMarked = marked.mark !== undefined;
    marked.mark = 1;
    return { sockets: state.getWebSockets().length, isMarked };
  });

async function hibernate(id: string, sockets: number): Promise<void> {
  expect((await inspect(id)).sockets).toBe(sockets);
  expect((await inspect(id)).isMarked).toBe(true);
  await evictDurableObject(stubOf(id), { webSockets: "hibernate" });
  expect(await inspect(id)).toEqual({ sockets, isMarked: false });
}

afterEach(() => {
  vi.useRealTimers();
});

describe("a lease that a socket holds", () => {
  it("[Y23] is granted, shown, used, and released at once when the socket closes", async () => {
    const id = await createSandbox();
    const firstSocket = await connect(id, "by socket");
    const granted = await firstSocket.next("granted");
    expect(granted).toMatchObject({ holder: "by socket", fence: expect.any(Number) });
    expect(await leaseOf(id)).toMatchObject({ state: "held", holder: "by socket" });
    const headers = { "berth-lease": String(granted.token) };
    const ran = await call("POST", of(id, "/exec"), { body: { command: "echo hi" }, headers });
    expect(await json(ran)).toMatchObject({ stdout: "hi\n" });
    firstSocket.close();
    await eventually(async () => expect((await leaseOf(id)).state).toBe("free"));
  });

  it("[Y23] queues with the calls in order of arrival, and is notified of its turn", async () => {
    const id = await createSandbox();
    const { token } = await json(call("POST", of(id, "/lease"), { body: { holder: "caller" } }));
    const firstSocket = await connect(id, "socket one");
    expect(await firstSocket.next("queued")).toMatchObject({ position: 0 });
    const secondSocket = await connect(id, "socket two");
    expect(await secondSocket.next("queued")).toMatchObject({ position: 1 });
    expect((await leaseOf(id)).waiters.map(({ holder }: { holder: string }) => holder)).toEqual([
      "socket one",
      "socket two",
    ]);
    await json(call("DELETE", of(id, "/lease"), { headers: { "berth-lease": String(token) } }));
    await firstSocket.next("granted");
    expect(secondSocket.frames.map(({ type }) => type)).toEqual(["queued"]);
    firstSocket.close();
    await secondSocket.next("granted");
    secondSocket.close();
    await eventually(async () =>
      expect(await leaseOf(id)).toMatchObject({ state: "free", waiterCount: 0 }),
    );
  });

  it("[Y23] leaves the queue when a waiting socket closes", async () => {
    const id = await createSandbox();
    const firstSocket = await connect(id, "one");
    await firstSocket.next("granted");
    const secondSocket = await connect(id, "two");
    await secondSocket.next("queued");
    secondSocket.close();
    await eventually(async () => expect((await leaseOf(id)).waiterCount).toBe(0));
    expect(await leaseOf(id)).toMatchObject({ state: "held", holder: "one" });
    firstSocket.close();
  });

  it("[Y24] sends the holder why it lost the lease, and closes", async () => {
    const id = await createSandbox();
    const firstSocket = await connect(id, "one");
    await firstSocket.next("granted");
    await json(call("DELETE", of(id, "/lease?break=true&reason=stuck")));
    expect(await firstSocket.next("lost")).toMatchObject({ reason: "broken" });
    await eventually(async () => expect(firstSocket.closed).toMatchObject({ code: 1000 }));
    await eventually(async () => expect((await leaseOf(id)).state).toBe("free"));
    const secondSocket = await connect(id, "two");
    await secondSocket.next("granted");
    const thirdSocket = await connect(id, "three");
    await thirdSocket.next("queued");
    await json(call("DELETE", of(id, "?force=true")));
    expect((await secondSocket.next("lost")).reason).toBe("destroyed");
    expect((await thirdSocket.next("lost")).reason).toBe("destroyed");
    expect((await inspect(id)).sockets).toBe(0);
  });

  it("[Y25] hibernates with the object, for holder and waiter, and wakes with it", async () => {
    const id = await createSandbox();
    const firstSocket = await connect(id, "one");
    const { token } = await firstSocket.next("granted");
    const secondSocket = await connect(id, "two");
    await secondSocket.next("queued");
    await hibernate(id, 2);
    expect(await leaseOf(id)).toMatchObject({ state: "held", holder: "one", waiterCount: 1 });
    const headers = { "berth-lease": String(token) };
    const ran = await call("POST", of(id, "/exec"), { body: { command: "true" }, headers });
    expect(await json(ran)).toMatchObject({ exitCode: 0 });
    await hibernate(id, 2);
    firstSocket.close();
    await secondSocket.next("granted");
    await hibernate(id, 1);
    secondSocket.close();
    await eventually(async () => expect((await leaseOf(id)).state).toBe("free"));
    expect(firstSocket.frames.map(({ type }) => type)).toEqual(["granted"]);
  });

  it("[Y25] gets its pongs without waking the object, and lasts as long as it pings", async () => {
    const id = await createSandbox();
    const firstSocket = await connect(id, "one");
    const { expiresAt } = await firstSocket.next("granted");
    await hibernate(id, 1);
    firstSocket.socket.send("ping");
    await eventually(async () => expect(firstSocket.pongs).toHaveLength(1));
    // The instance that was marked by hibernate() is the same: nothing woke another.
    expect((await inspect(id)).isMarked).toBe(true);
    const silent = Date.parse(String(expiresAt));
    vi.useFakeTimers({ toFake: ["Date"], now: silent + 2 * limits.leasePingMs });
    await overRest.ring(id);
    expect((await leaseOf(id)).state).not.toBe("held");
    expect((await firstSocket.next("lost")).reason).toBe("expired");
  });

  it("[Y26] can be continued with its token within ten seconds after its socket was lost", async () => {
    const id = await createSandbox();
    const firstSocket = await connect(id, "one");
    const granted = await firstSocket.next("granted");
    const secondSocket = await connect(id, "two");
    await secondSocket.next("queued");
    await evictDurableObject(stubOf(id), { webSockets: "close" });
    const before = Date.now();
    const held = await leaseOf(id);
    expect(held).toMatchObject({ state: "held", holder: "one" });
    expect(Date.parse(held.expiresAt)).toBeLessThanOrEqual(Date.now() + limits.leaseReconnectMs);
    expect(Date.parse(held.expiresAt)).toBeGreaterThanOrEqual(before);
    const continued = await connect(id, "one", { "berth-lease": String(granted.token) });
    expect(await continued.next("granted")).toMatchObject({
      token: granted.token,
      fence: granted.fence,
    });
    expect(await leaseOf(id)).toMatchObject({ state: "held", holder: "one" });
    continued.close();
    await eventually(async () => expect((await leaseOf(id)).state).toBe("free"));
  });

  it("[Y26] is lost if it is not continued in time", async () => {
    const id = await createSandbox();
    const firstSocket = await connect(id, "one");
    const { token } = await firstSocket.next("granted");
    await evictDurableObject(stubOf(id), { webSockets: "close" });
    const { state, expiresAt } = await leaseOf(id);
    expect(state).toBe("held");
    vi.useFakeTimers({ toFake: ["Date"], now: Date.parse(expiresAt) });
    await overRest.ring(id);
    expect((await leaseOf(id)).state).not.toBe("held");
    vi.useRealTimers();
    const late = await connect(id, "one", { "berth-lease": String(token) });
    expect((await late.next("granted")).token).not.toBe(token);
    late.close();
  });

  it("[Y23] is not granted if the sandbox was destroyed during the handshake with the agent", async () => {
    const id = await createSandbox();
    await evictDurableObject(stubOf(id));
    const handshake = `POST ${agentPaths.fence}`;
    const handshakes = async () =>
      (await containerOf(id).facts()).requests.filter((line) => line === handshake);
    const before = (await handshakes()).length;
    await containerOf(id).holdRequests(handshake);
    const destroying = call("DELETE", of(id, ""));
    await eventually(async () => expect((await handshakes()).length).toBe(before + 1));
    const connecting = call("GET", of(id, "/lease/connect?holder=late"), { headers: upgrade });
    // Runs after it in the same object.
    await call("GET", of(id, ""));
    await containerOf(id).releaseHeld();
    const answer = await connecting;
    expect(answer.status).toBe(410);
    expect((await answer.json<{ error: { code: string } }>()).error.code).toBe("sandbox_destroyed");
    expect((await destroying).status).toBe(200);
  });

  it("[Y27] opens for a connect ticket once, as subprotocol or as query", async () => {
    const id = await createSandbox();
    const ticket = async () => String((await json(call("POST", of(id, "/tickets")))).ticket);
    const open = (path: string, headers = {}) =>
      call("GET", of(id, path), { key: null, headers: { ...upgrade, ...headers } });
    const first = await ticket();
    const protocols = `berth.lease.v1, berth.ticket.${first}`;
    const opened = await open("/lease/connect", { "sec-websocket-protocol": protocols });
    expect(opened.status).toBe(101);
    expect(opened.headers.get("sec-websocket-protocol")).toBe("berth.lease.v1");
    const firstSocket = new LeaseSocket(opened.webSocket as WebSocket);
    await firstSocket.next("granted");
    const repeated = await open("/lease/connect", { "sec-websocket-protocol": protocols });
    expect(repeated.status).toBe(401);
    expect(await json(repeated)).toMatchObject({ error: { code: "unauthenticated" } });
    firstSocket.close();
    const second = await open(`/lease/connect?ct=${await ticket()}`);
    expect(second.status).toBe(101);
    const secondSocket = new LeaseSocket(second.webSocket as WebSocket);
    await secondSocket.next("granted");
    secondSocket.close();

    const other = await createSandbox();
    const foreign = await call("GET", of(other, `/lease/connect?ct=${await ticket()}`), {
      key: null,
      headers: upgrade,
    });
    expect(foreign.status).toBe(401);
    await foreign.text();
    const late = await ticket();
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + limits.connectTicketMs });
    const expired = await open(`/lease/connect?ct=${late}`);
    expect(expired.status).toBe(401);
    await expired.text();
  });

  it("[Y27] opens no other route for a connect ticket", async () => {
    const id = await createSandbox();
    const { ticket } = await json(call("POST", of(id, "/tickets")));
    for (const tail of ["", "/lease", "/events", "/metadata"]) {
      const answer = await call("GET", of(id, `${tail}?ct=${ticket}`), { key: null });
      expect(answer.status, tail).toBe(401);
      await answer.text();
    }
  });

  it("[Y28] is a WebSocket for allowed pages and for programs, and nothing else", async () => {
    const id = await createSandbox();
    const path = of(id, "/lease/connect");
    const plain = await call("GET", path);
    expect(plain.status).toBe(426);
    expect(await json(plain)).toMatchObject({ error: { code: "upgrade_required" } });
    for (const origin of [
      "https://evil.test",
      "null",
      "http://berth.test.evil",
      "https://berth.test",
    ]) {
      const answer = await call("GET", path, { headers: { ...upgrade, origin } });
      expect(answer.status, origin).toBe(403);
      await answer.text();
    }
    expect(await leaseOf(id)).toMatchObject({ state: "free", fence: expect.any(Number) });
    for (const origin of ["http://berth.test", "https://app.test"]) {
      const own = await connect(id, "a page", { origin });
      await own.next("granted");
      own.close();
      await eventually(async () => expect(await leaseOf(id)).toMatchObject({ state: "free" }));
    }
    await json(call("DELETE", of(id, "?force=true")));
    const refused = await call("GET", path, { headers: upgrade });
    expect(refused.status).toBe(410);
    await refused.text();
  });
});
