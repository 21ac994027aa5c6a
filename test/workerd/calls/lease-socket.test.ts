import { evictDurableObject, runInDurableObject } from "cloudflare:test";
import { afterEach, describe, expect, it, vi } from "vitest";
import { agentPaths } from "../../../src/protocol/internal/agent.ts";
import { limits } from "../../../src/protocol/limits.ts";
import { soon } from "../../contract/sandbox/world.ts";
import { call, createSandbox, json } from "../calls.ts";
import { machine } from "../machine.ts";
import { overRest, stubOf } from "../world.ts";

type Frame = { type: string } & Record<string, unknown>;

const of = (id: string, tail = "") => `/v1/sandboxes/${id}${tail}`;
const leaseOf = (id: string) => json(call("GET", of(id, "/lease")));
const upgrade = { upgrade: "websocket" };

/** A socket that keeps what it is told. */
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
    await soon(async () => expect(this.frames.map((frame) => frame.type)).toContain(type));
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
const attached = (id: string) =>
  runInDurableObject(stubOf(id), (object, state) => {
    const marked = object as unknown as { mark?: number };
    const known = marked.mark !== undefined;
    marked.mark = 1;
    return { sockets: state.getWebSockets().length, known };
  });

async function sleeps(id: string, sockets: number): Promise<void> {
  expect((await attached(id)).sockets).toBe(sockets);
  expect((await attached(id)).known).toBe(true);
  await evictDurableObject(stubOf(id), { webSockets: "hibernate" });
  expect(await attached(id)).toEqual({ sockets, known: false });
}

afterEach(() => {
  vi.useRealTimers();
});

describe("a lease that a socket holds", () => {
  it("[Y23] is granted, shown, used, and let go at once when the socket closes", async () => {
    const id = await createSandbox();
    const one = await connect(id, "by socket");
    const granted = await one.next("granted");
    expect(granted).toMatchObject({ holder: "by socket", fence: expect.any(Number) });
    expect(await leaseOf(id)).toMatchObject({ state: "held", holder: "by socket" });
    const headers = { "berth-lease": String(granted.token) };
    const ran = await call("POST", of(id, "/exec"), { body: { command: "echo hi" }, headers });
    expect(await json(ran)).toMatchObject({ stdout: "hi\n" });
    one.close();
    await soon(async () => expect((await leaseOf(id)).state).toBe("free"));
  });

  it("[Y23] queues in order of arrival with those who call, and is told its turn", async () => {
    const id = await createSandbox();
    const { token } = await json(call("POST", of(id, "/lease"), { body: { holder: "caller" } }));
    const one = await connect(id, "socket one");
    expect(await one.next("queued")).toMatchObject({ position: 0 });
    const two = await connect(id, "socket two");
    expect(await two.next("queued")).toMatchObject({ position: 1 });
    expect((await leaseOf(id)).waiters.map(({ holder }: { holder: string }) => holder)).toEqual([
      "socket one",
      "socket two",
    ]);
    await json(call("DELETE", of(id, "/lease"), { headers: { "berth-lease": String(token) } }));
    await one.next("granted");
    expect(two.frames.map(({ type }) => type)).toEqual(["queued"]);
    one.close();
    await two.next("granted");
    two.close();
    await soon(async () =>
      expect(await leaseOf(id)).toMatchObject({ state: "free", waiterCount: 0 }),
    );
  });

  it("[Y23] leaves the queue when a waiting socket closes", async () => {
    const id = await createSandbox();
    const one = await connect(id, "one");
    await one.next("granted");
    const two = await connect(id, "two");
    await two.next("queued");
    two.close();
    await soon(async () => expect((await leaseOf(id)).waiterCount).toBe(0));
    expect(await leaseOf(id)).toMatchObject({ state: "held", holder: "one" });
    one.close();
  });

  it("[Y24] tells the holder why it lost the lease, and closes", async () => {
    const id = await createSandbox();
    const one = await connect(id, "one");
    await one.next("granted");
    await json(call("DELETE", of(id, "/lease?break=true&reason=stuck")));
    expect(await one.next("lost")).toMatchObject({ reason: "broken" });
    await soon(async () => expect(one.closed).toMatchObject({ code: 1000 }));
    await soon(async () => expect((await leaseOf(id)).state).toBe("free"));
    const two = await connect(id, "two");
    await two.next("granted");
    const three = await connect(id, "three");
    await three.next("queued");
    await json(call("DELETE", of(id, "?force=true")));
    expect((await two.next("lost")).reason).toBe("destroyed");
    expect((await three.next("lost")).reason).toBe("destroyed");
    expect((await attached(id)).sockets).toBe(0);
  });

  it("[Y25] sleeps with the object, holder and waiter, and both wake with it", async () => {
    const id = await createSandbox();
    const one = await connect(id, "one");
    const { token } = await one.next("granted");
    const two = await connect(id, "two");
    await two.next("queued");
    await sleeps(id, 2);
    expect(await leaseOf(id)).toMatchObject({ state: "held", holder: "one", waiterCount: 1 });
    const headers = { "berth-lease": String(token) };
    const ran = await call("POST", of(id, "/exec"), { body: { command: "true" }, headers });
    expect(await json(ran)).toMatchObject({ exitCode: 0 });
    await sleeps(id, 2);
    one.close();
    await two.next("granted");
    await sleeps(id, 1);
    two.close();
    await soon(async () => expect((await leaseOf(id)).state).toBe("free"));
    expect(one.frames.map(({ type }) => type)).toEqual(["granted"]);
  });

  it("[Y25] is answered its pings without waking, and lives as long as it sends them", async () => {
    const id = await createSandbox();
    const one = await connect(id, "one");
    const { expiresAt } = await one.next("granted");
    await sleeps(id, 1);
    one.socket.send("ping");
    await soon(async () => expect(one.pongs).toHaveLength(1));
    // The instance that was marked by sleeps() is the same: nothing woke another.
    expect((await attached(id)).known).toBe(true);
    const silent = Date.parse(String(expiresAt));
    vi.useFakeTimers({ toFake: ["Date"], now: silent + 2 * limits.leasePingMs });
    await overRest.ring(id);
    expect((await leaseOf(id)).state).not.toBe("held");
    expect((await one.next("lost")).reason).toBe("expired");
  });

  it("[Y26] may come back with its token within ten seconds after its socket was lost", async () => {
    const id = await createSandbox();
    const one = await connect(id, "one");
    const granted = await one.next("granted");
    const two = await connect(id, "two");
    await two.next("queued");
    await evictDurableObject(stubOf(id), { webSockets: "close" });
    const before = Date.now();
    const held = await leaseOf(id);
    expect(held).toMatchObject({ state: "held", holder: "one" });
    expect(Date.parse(held.expiresAt)).toBeLessThanOrEqual(Date.now() + limits.leaseReconnectMs);
    expect(Date.parse(held.expiresAt)).toBeGreaterThanOrEqual(before);
    const back = await connect(id, "one", { "berth-lease": String(granted.token) });
    expect(await back.next("granted")).toMatchObject({
      token: granted.token,
      fence: granted.fence,
    });
    expect(await leaseOf(id)).toMatchObject({ state: "held", holder: "one" });
    back.close();
    await soon(async () => expect((await leaseOf(id)).state).toBe("free"));
  });

  it("[Y26] is lost when nobody comes back in time", async () => {
    const id = await createSandbox();
    const one = await connect(id, "one");
    const { token } = await one.next("granted");
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

  it("[Y23] is granted to none whose sandbox was destroyed while its object and agent met", async () => {
    const id = await createSandbox();
    await evictDurableObject(stubOf(id));
    const greeting = `POST ${agentPaths.fence}`;
    const asked = async () => (await machine(id).facts()).asked.filter((one) => one === greeting);
    const before = (await asked()).length;
    await machine(id).holdCalls(greeting);
    const destroying = call("DELETE", of(id, ""));
    await soon(async () => expect((await asked()).length).toBe(before + 1));
    const connecting = call("GET", of(id, "/lease/connect?holder=late"), { headers: upgrade });
    // Behind it, at the same object.
    await call("GET", of(id, ""));
    await machine(id).letAnswersGo();
    const answer = await connecting;
    expect(answer.status).toBe(410);
    expect((await answer.json<{ error: { code: string } }>()).error.code).toBe("sandbox_destroyed");
    expect((await destroying).status).toBe(200);
  });

  it("[Y27] opens for a connect ticket once, by subprotocol or by query", async () => {
    const id = await createSandbox();
    const ticket = async () => String((await json(call("POST", of(id, "/tickets")))).ticket);
    const open = (path: string, headers = {}) =>
      call("GET", of(id, path), { key: null, headers: { ...upgrade, ...headers } });
    const first = await ticket();
    const protocols = `berth.lease.v1, berth.ticket.${first}`;
    const opened = await open("/lease/connect", { "sec-websocket-protocol": protocols });
    expect(opened.status).toBe(101);
    expect(opened.headers.get("sec-websocket-protocol")).toBe("berth.lease.v1");
    const one = new LeaseSocket(opened.webSocket as WebSocket);
    await one.next("granted");
    const again = await open("/lease/connect", { "sec-websocket-protocol": protocols });
    expect(again.status).toBe(401);
    expect(await json(again)).toMatchObject({ error: { code: "unauthenticated" } });
    one.close();
    const second = await open(`/lease/connect?ct=${await ticket()}`);
    expect(second.status).toBe(101);
    const two = new LeaseSocket(second.webSocket as WebSocket);
    await two.next("granted");
    two.close();

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

  it("[Y28] is a WebSocket for our own pages and for programs, and nothing else", async () => {
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
      await soon(async () => expect(await leaseOf(id)).toMatchObject({ state: "free" }));
    }
    await json(call("DELETE", of(id, "?force=true")));
    const gone = await call("GET", path, { headers: upgrade });
    expect(gone.status).toBe(410);
    await gone.text();
  });
});
