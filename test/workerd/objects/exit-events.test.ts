import { evictDurableObject, runDurableObjectAlarm } from "cloudflare:test";
import { afterEach, describe, expect, it, vi } from "vitest";
import { eventually } from "../../contract/sandbox/world.ts";
import * as api from "../api.ts";
import { call, createSandbox, pathOf, stubOf } from "../calls.ts";
import { containerOf } from "../container.ts";
import { alarmOf } from "../world.ts";

const idleTimeoutMs = 60_000;

type ExitEvent = { type: string; what: string; id: string };

/** The events of processes, sessions and terminals, in order. */
async function exitEventsOf(id: string): Promise<ExitEvent[]> {
  const events: ExitEvent[] = await api.events(id);
  return events.filter(({ type }) => ["process", "session", "terminal"].includes(type));
}

/** Moves the clock forward and rings the alarm that is due by then. */
async function advanceClock(id: string, ms: number): Promise<void> {
  vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + ms });
  expect(await runDurableObjectAlarm(stubOf(id))).toBe(true);
}

async function connect(id: string, terminal: string): Promise<WebSocket> {
  const headers = { upgrade: "websocket" };
  const response = await call("GET", pathOf(id, `/terminals/${terminal}/connect`), { headers });
  expect(response.status).toBe(101);
  const socket = response.webSocket as WebSocket;
  socket.accept();
  return socket;
}

afterEach(() => vi.useRealTimers());

describe("a process, session or terminal", () => {
  it("[U8] has one event for its start and one for its end, also across evictions", async () => {
    const id = await createSandbox();
    const process = await api.request("POST", id, "/processes", { command: "sleep 60" });
    const session = await api.request("POST", id, "/sessions", {});
    expect((await api.request("POST", id, "/sessions", { id: session.id })).id).toBe(session.id);
    const inside = await api.request("POST", id, `/sessions/${session.id}/processes`, {
      command: "true",
    });
    const terminal = await api.request("POST", id, "/terminals", { id: "mine" });
    const { incarnation } = process;
    expect(await exitEventsOf(id)).toEqual([
      { type: "process", what: "started", id: process.id, incarnation },
      { type: "session", what: "started", id: session.id, incarnation },
      { type: "process", what: "started", id: inside.id, sessionId: session.id, incarnation },
      { type: "terminal", what: "started", id: terminal.id, incarnation },
    ]);

    await api.request("GET", id, `/processes/${inside.id}/wait`);
    await evictDurableObject(stubOf(id));
    await api.request("DELETE", id, `/processes/${process.id}`);
    await api.request("DELETE", id, `/sessions/${session.id}`);
    await evictDurableObject(stubOf(id));
    await api.request("DELETE", id, "/terminals/mine");
    const ended = async () => (await exitEventsOf(id)).filter(({ what }) => what === "ended");
    await eventually(async () => expect(await ended()).toHaveLength(4));
    for (let round = 0; round < 3; round++) {
      await evictDurableObject(stubOf(id));
      await api.request("GET", id, `/processes/${inside.id}/wait`);
      await runDurableObjectAlarm(stubOf(id));
    }
    // A pause checks a last time, and would find what was not reported.
    await api.request("POST", id, "/pause");
    expect(await ended()).toMatchObject([
      { id: inside.id, type: "process", reason: "exited", exitCode: 0, n: 1, incarnation },
      { id: process.id, type: "process", reason: "ended", signal: "SIGTERM", n: 2 },
      { id: session.id, type: "session", reason: "ended", n: 3 },
      { id: "mine", type: "terminal", reason: "ended", n: 4 },
    ]);
  });

  it("[U8] has events in a new incarnation too, from the first exit on", async () => {
    const id = await createSandbox();
    const run = async () => {
      const { id: process, incarnation } = await api.request("POST", id, "/processes", {
        command: "true",
      });
      await api.request("GET", id, `/processes/${process}/wait`);
      const first = { what: "ended", id: process, n: 1, incarnation };
      await eventually(async () => expect((await exitEventsOf(id)).at(-1)).toMatchObject(first));
    };
    await run();
    await api.request("POST", id, "/pause");
    await run();
    expect((await exitEventsOf(id)).filter(({ what }) => what === "ended")).toHaveLength(2);
  });

  it("[U8] has its start event before its end event, however soon it ends", async () => {
    const id = await createSandbox();
    const { id: other } = await api.request("POST", id, "/processes", { command: "sleep 60" });
    await containerOf(id).holdResponses("POST /v1/processes");
    const starting = api.request("POST", id, "/processes", { command: "true" });
    const ran = async () => (await api.facts(id)).requests;
    await eventually(async () => {
      const starts = (await ran()).filter((line) => line === "POST /v1/processes");
      expect(starts).toHaveLength(2);
    });
    // The end of another one makes the object check for all exits.
    await api.request("DELETE", id, `/processes/${other}`);
    await eventually(async () => expect(await ran()).toContain("GET /v1/work"));
    await api.request("POST", id, "/touch");
    const early = (await exitEventsOf(id)).map(({ what }) => what);
    expect(early).not.toContain("ended");
    await containerOf(id).releaseHeld();
    const { id: short } = await starting;
    await eventually(async () => expect(await exitEventsOf(id)).toHaveLength(4));
    expect((await exitEventsOf(id)).map((event) => [event.what, event.id])).toEqual([
      ["started", other],
      ["started", short],
      ["ended", short],
      ["ended", other],
    ]);
  });

  it("[U9] keeps a sandbox busy while a process runs; the idle time counts from its end", async () => {
    const id = await createSandbox({ idleTimeoutMs });
    const { id: process } = await api.request("POST", id, "/processes", { command: "sleep 600" });
    for (let round = 0; round < 3; round++) {
      await evictDurableObject(stubOf(id));
      await advanceClock(id, idleTimeoutMs + 1);
      expect(await api.state(id)).toBe("running");
    }
    // It ended by itself, a while ago as the agent says.
    await containerOf(id).signal(15);
    await advanceClock(id, 2 * idleTimeoutMs);
    await eventually(async () => expect(await api.state(id)).toBe("paused"));
    const [last] = (await exitEventsOf(id)).slice(-1);
    expect(last).toMatchObject({ what: "ended", id: process });
  });

  it("[U9] keeps it busy while a viewer is connected to a terminal, but not by a terminal alone", async () => {
    const id = await createSandbox({ idleTimeoutMs });
    await api.request("POST", id, "/terminals", { id: "mine" });
    const socket = await connect(id, "mine");
    await advanceClock(id, idleTimeoutMs + 1);
    expect(await api.state(id)).toBe("running");
    expect((await api.request("GET", id, "/terminals/mine")).viewers).toBe(1);
    socket.close(1000, "done");
    vi.useRealTimers();
    await eventually(async () =>
      expect((await api.request("GET", id, "/terminals/mine")).viewers).toBe(0),
    );
    await advanceClock(id, 3 * idleTimeoutMs);
    await eventually(async () => expect(await api.state(id)).toBe("paused"));
  });

  it("[U9] is checked at the idle deadline only, not by a command", async () => {
    const id = await createSandbox({ idleTimeoutMs });
    const requestCount = async () =>
      (await api.facts(id)).requests.filter((line) => line === "GET /v1/work").length;
    await api.request("POST", id, "/exec", { command: "true" });
    expect(await requestCount()).toBe(0);
    const due = (await alarmOf(id)) ?? expect.fail("no alarm");
    vi.useFakeTimers({ toFake: ["Date"], now: due });
    await api.request("POST", id, "/exec", { command: "true" });
    await runDurableObjectAlarm(stubOf(id));
    expect(await api.state(id)).toBe("running");
    vi.useFakeTimers({ toFake: ["Date"], now: due + idleTimeoutMs + 1 });
    await runDurableObjectAlarm(stubOf(id));
    await eventually(async () => expect(await api.state(id)).toBe("paused"));
    expect(await requestCount()).toBe(1);
  });
});
