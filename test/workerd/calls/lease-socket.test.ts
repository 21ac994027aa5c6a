import { evictDurableObject, runInDurableObject } from "cloudflare:test";
import { afterEach, describe, expect, it, vi } from "vitest";
import { agentPaths } from "../../../src/protocol/internal/agent.ts";
import { limits } from "../../../src/protocol/limits.ts";
import { eventually } from "../../contract/sandbox/world.ts";
import * as api from "../api.ts";
import { call, createSandbox, json, pathOf, refusal, stubOf, upgrade } from "../calls.ts";
import { containerOf } from "../container.ts";
import { FrameSocket } from "../frame-socket.ts";
import { overRest } from "../world.ts";

async function connect(
  id: string,
  holder: string,
  headers: Record<string, string> = {},
): Promise<FrameSocket> {
  const path = pathOf(id, `/lease/connect?holder=${encodeURIComponent(holder)}`);
  return new FrameSocket(await call("GET", path, { headers: { ...upgrade, ...headers } }));
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

const untilFree = (id: string) =>
  eventually(async () => expect((await api.getLease(id)).state).toBe("free"));

afterEach(() => vi.useRealTimers());

describe("a lease that a socket holds", () => {
  it("[Y23] is granted, shown, used, and released at once when the socket closes", async () => {
    const id = await createSandbox();
    const firstSocket = await connect(id, "by socket");
    const granted = await firstSocket.next("granted");
    expect(granted).toMatchObject({ holder: "by socket", fence: expect.any(Number) });
    expect(await api.getLease(id)).toMatchObject({ state: "held", holder: "by socket" });
    expect(await json(api.exec(id, "echo hi", api.leaseHeader(granted.token)))).toMatchObject({
      stdout: "hi\n",
    });
    firstSocket.close();
    await untilFree(id);
  });

  it("[Y23] queues with the calls in order of arrival, and is notified of its turn", async () => {
    const id = await createSandbox();
    const { token } = await api.acquireLease(id, { holder: "caller" });
    const firstSocket = await connect(id, "socket one");
    expect(await firstSocket.next("queued")).toMatchObject({ position: 0 });
    const secondSocket = await connect(id, "socket two");
    expect(await secondSocket.next("queued")).toMatchObject({ position: 1 });
    expect(
      (await api.getLease(id)).waiters.map(({ holder }: { holder: string }) => holder),
    ).toEqual(["socket one", "socket two"]);
    await api.releaseLease(id, token);
    await firstSocket.next("granted");
    expect(secondSocket.types()).toEqual(["queued"]);
    firstSocket.close();
    await secondSocket.next("granted");
    secondSocket.close();
    await untilFree(id);
    expect((await api.getLease(id)).waiterCount).toBe(0);
  });

  it("[Y23] leaves the queue when a waiting socket closes", async () => {
    const id = await createSandbox();
    const firstSocket = await connect(id, "one");
    await firstSocket.next("granted");
    const secondSocket = await connect(id, "two");
    await secondSocket.next("queued");
    secondSocket.close();
    await eventually(async () => expect((await api.getLease(id)).waiterCount).toBe(0));
    expect(await api.getLease(id)).toMatchObject({ state: "held", holder: "one" });
    firstSocket.close();
  });

  it("[Y24] sends the holder why it lost the lease, and closes", async () => {
    const id = await createSandbox();
    const firstSocket = await connect(id, "one");
    await firstSocket.next("granted");
    await api.request("DELETE", id, "/lease?break=true&reason=stuck");
    expect(await firstSocket.next("lost")).toMatchObject({ reason: "broken" });
    await eventually(async () => expect(firstSocket.closed).toMatchObject({ code: 1000 }));
    await untilFree(id);
    const secondSocket = await connect(id, "two");
    await secondSocket.next("granted");
    const thirdSocket = await connect(id, "three");
    await thirdSocket.next("queued");
    await api.request("DELETE", id, "?force=true");
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
    expect(await api.getLease(id)).toMatchObject({ state: "held", holder: "one", waiterCount: 1 });
    expect(await json(api.exec(id, "true", api.leaseHeader(token)))).toMatchObject({ exitCode: 0 });
    await hibernate(id, 2);
    firstSocket.close();
    await secondSocket.next("granted");
    await hibernate(id, 1);
    secondSocket.close();
    await untilFree(id);
    expect(firstSocket.types()).toEqual(["granted"]);
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
    expect((await api.getLease(id)).state).not.toBe("held");
    expect((await firstSocket.next("lost")).reason).toBe("expired");
  });

  it.each([1001, 1011])(
    "[Q28] a close frame with code %i is not its holder's: it may come back",
    async (code) => {
      const id = await createSandbox();
      const firstSocket = await connect(id, "one");
      const { token, fence } = await firstSocket.next("granted");
      const secondSocket = await connect(id, "two");
      await secondSocket.next("queued");
      firstSocket.socket.close(code);
      await eventually(async () => expect((await inspect(id)).sockets).toBe(1));
      expect(await api.getLease(id)).toMatchObject({ state: "held", holder: "one" });
      const continued = await connect(id, "one", api.leaseHeader(String(token)));
      expect(await continued.next("granted")).toMatchObject({ token, fence });
      vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 2 * limits.leaseCutMs });
      await overRest.ring(id);
      expect(await api.getLease(id)).toMatchObject({ state: "held", holder: "one" });
      vi.useRealTimers();
      continued.close();
      await secondSocket.next("granted");
      secondSocket.close();
      await untilFree(id);
    },
  );

  it("[Q29] a holder that was cut off and does not return gives way to the next one", async () => {
    const id = await createSandbox();
    const firstSocket = await connect(id, "one");
    const { token } = await firstSocket.next("granted");
    const secondSocket = await connect(id, "two");
    await secondSocket.next("queued");
    firstSocket.socket.close(1001);
    await secondSocket.next("granted");
    const late = json(api.exec(id, "true", api.leaseHeader(String(token))));
    expect((await late).error).toMatchObject({ code: "lease_lost", reason: "disconnected" });
    secondSocket.close();
    await untilFree(id);
  });

  it("[Y26] can be continued with its token within ten seconds after its socket was lost", async () => {
    const id = await createSandbox();
    const firstSocket = await connect(id, "one");
    const granted = await firstSocket.next("granted");
    const secondSocket = await connect(id, "two");
    await secondSocket.next("queued");
    await evictDurableObject(stubOf(id), { webSockets: "close" });
    const before = Date.now();
    const held = await api.getLease(id);
    expect(held).toMatchObject({ state: "held", holder: "one" });
    expect(Date.parse(held.expiresAt)).toBeLessThanOrEqual(Date.now() + limits.leaseReconnectMs);
    expect(Date.parse(held.expiresAt)).toBeGreaterThanOrEqual(before);
    const continued = await connect(id, "one", api.leaseHeader(granted.token));
    const { token, fence } = granted;
    expect(await continued.next("granted")).toMatchObject({ token, fence });
    expect(await api.getLease(id)).toMatchObject({ state: "held", holder: "one" });
    continued.close();
    await untilFree(id);
  });

  it("[Y26] is lost if it is not continued in time", async () => {
    const id = await createSandbox();
    const firstSocket = await connect(id, "one");
    const { token } = await firstSocket.next("granted");
    await evictDurableObject(stubOf(id), { webSockets: "close" });
    const { state, expiresAt } = await api.getLease(id);
    expect(state).toBe("held");
    vi.useFakeTimers({ toFake: ["Date"], now: Date.parse(expiresAt) });
    await overRest.ring(id);
    expect((await api.getLease(id)).state).not.toBe("held");
    vi.useRealTimers();
    const late = await connect(id, "one", api.leaseHeader(token));
    expect((await late.next("granted")).token).not.toBe(token);
    late.close();
  });

  it("[Y23] is not granted if the sandbox was destroyed during the handshake with the agent", async () => {
    const id = await createSandbox();
    await evictDurableObject(stubOf(id));
    const handshake = `POST ${agentPaths.fence}`;
    const handshakes = async () =>
      (await api.facts(id)).requests.filter((line) => line === handshake);
    const before = (await handshakes()).length;
    await containerOf(id).holdRequests(handshake);
    const destroying = call("DELETE", pathOf(id, ""));
    await eventually(async () => expect((await handshakes()).length).toBe(before + 1));
    const connecting = call("GET", pathOf(id, "/lease/connect?holder=late"), { headers: upgrade });
    // Runs after it in the same object.
    await call("GET", pathOf(id, ""));
    await containerOf(id).releaseHeld();
    expect(await refusal(connecting)).toEqual([410, "sandbox_destroyed"]);
    expect((await destroying).status).toBe(200);
  });

  it("[Y27] opens for a connect ticket once, as subprotocol or as query", async () => {
    const id = await createSandbox();
    const open = (path: string, headers = {}) =>
      call("GET", pathOf(id, path), { key: null, headers: { ...upgrade, ...headers } });
    const first = await api.makeTicket(id);
    const protocols = `berth.lease.v1, berth.ticket.${first}`;
    const opened = await open("/lease/connect", { "sec-websocket-protocol": protocols });
    expect(opened.headers.get("sec-websocket-protocol")).toBe("berth.lease.v1");
    const firstSocket = new FrameSocket(opened);
    await firstSocket.next("granted");
    const repeated = open("/lease/connect", { "sec-websocket-protocol": protocols });
    expect(await refusal(repeated)).toEqual([401, "unauthenticated"]);
    firstSocket.close();
    const secondSocket = new FrameSocket(
      await open(`/lease/connect?ct=${await api.makeTicket(id)}`),
    );
    await secondSocket.next("granted");
    secondSocket.close();

    const other = await createSandbox();
    const foreign = call("GET", pathOf(other, `/lease/connect?ct=${await api.makeTicket(id)}`), {
      ...{ key: null, headers: upgrade },
    });
    expect(await refusal(foreign)).toEqual([401, "unauthenticated"]);
    const late = await api.makeTicket(id);
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + limits.connectTicketMs });
    expect(await refusal(open(`/lease/connect?ct=${late}`))).toEqual([401, "unauthenticated"]);
  });

  it("[Y27] opens no other route for a connect ticket", async () => {
    const id = await createSandbox();
    const ticket = await api.makeTicket(id);
    for (const tail of ["", "/lease", "/events", "/metadata"]) {
      const answer = call("GET", pathOf(id, `${tail}?ct=${ticket}`), { key: null });
      expect(await refusal(answer), tail).toEqual([401, "unauthenticated"]);
    }
  });

  it("[Y28] is a WebSocket for allowed pages and for programs, and nothing else", async () => {
    const id = await createSandbox();
    const path = pathOf(id, "/lease/connect");
    expect(await refusal(call("GET", path))).toEqual([426, "upgrade_required"]);
    const foreign = ["https://evil.test", "null", "http://berth.test.evil", "https://berth.test"];
    for (const origin of foreign) {
      const answer = call("GET", path, { headers: { ...upgrade, origin } });
      expect(await refusal(answer), origin).toEqual([403, "forbidden"]);
    }
    expect(await api.getLease(id)).toMatchObject({ state: "free", fence: expect.any(Number) });
    for (const origin of ["http://berth.test", "https://app.test"]) {
      const own = await connect(id, "a page", { origin });
      await own.next("granted");
      own.close();
      await untilFree(id);
    }
    await api.request("DELETE", id, "?force=true");
    const refused = call("GET", path, { headers: upgrade });
    expect(await refusal(refused)).toEqual([410, "sandbox_destroyed"]);
  });
});
