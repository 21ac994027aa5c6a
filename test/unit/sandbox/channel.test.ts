/** The channel to an agent, with a clock and an agent end that the test controls. */
import { expect, it, vi } from "vitest";
import { AgentChannel } from "../../../src/objects/sandbox/agent/agent-channel.ts";
import { AgentClient } from "../../../src/objects/sandbox/agent/agent-client.ts";
import { SnapshotFreeze } from "../../../src/objects/sandbox/lifecycle/snapshot-freeze.ts";
import {
  deferredStatus,
  readCall,
  writeResult,
} from "../../../src/protocol/internal/agent-channel.ts";
import { limits } from "../../../src/protocol/limits.ts";
import { type Socket, socketPair, upgradeResponse } from "../../fakes/agent/socket-pair.ts";
import { interrupted, startSandbox, useFakeTimers } from "./harness.ts";

useFakeTimers();

const overChannel = "CHANNEL /v1/exec";

async function withChannel() {
  const { sandbox, container } = await startSandbox();
  container.channel.isSupported = true;
  const run = (command: string) => sandbox.exec({ command });
  for (let n = 0; n < 3; n++) await run("true");
  expect(container.requests.at(-1)).toBe(overChannel);
  return { container, sandbox, run, commandsRun: () => container.agent?.commandsRun ?? [] };
}

it("[U16] a silent channel gets the time of a silent agent, then interrupts each of its commands once", async () => {
  const { container, sandbox, run, commandsRun } = await withChannel();
  container.channel.fault = "silent";
  const errors: unknown[] = [];
  for (const command of ["echo one", "echo two"]) {
    run(command).catch((error: unknown) => errors.push(error));
  }
  await vi.waitFor(() => expect(commandsRun()).toContain("echo two"));
  await vi.advanceTimersByTimeAsync(limits.agentHeadersMs / 2);
  expect(errors).toEqual([]);
  await vi.advanceTimersByTimeAsync(limits.agentHeadersMs);
  await vi.waitFor(() => expect(errors).toHaveLength(2));
  for (const error of errors) {
    expect(error).toMatchObject({ code: "operation_interrupted", facts: { admitted: "unknown" } });
  }
  expect((await run("echo on")).stdout).toBe("on\n");
  expect(commandsRun().slice(3)).toEqual(["echo one", "echo two", "echo on"]);
  expect(await sandbox.get()).toMatchObject({ state: "running" });
});

it("[U16] a channel that breaks interrupts its commands at once, and none of them is sent again", async () => {
  const { container, run, commandsRun } = await withChannel();
  container.channel.fault = "cut";
  const startedAt = Date.now();
  await expect(run("echo cut")).rejects.toMatchObject({
    code: "operation_interrupted",
    facts: { admitted: "unknown" },
  });
  expect(Date.now() - startedAt).toBeLessThan(limits.agentHeadersMs);
  container.channel.fault = undefined;
  const { length } = container.requests;
  for (let n = 0; n < 3; n++) await run("echo on");
  expect(container.requests.slice(length)).not.toContain("GET /v1/line");
  expect(commandsRun().slice(3)).toEqual(["echo cut", "echo on", "echo on", "echo on"]);
});

type Init = { headers: Record<string, string>; signal: AbortSignal };

/** An object's channel whose agent end the test has. */
function createChannel() {
  const ends: Socket[] = [];
  const closed: Socket[] = [];
  const signals: AbortSignal[] = [];
  const requests: string[] = [];
  const received: string[] = [];
  const host = {
    clock: () => Date.now(),
    setTimer(ms: number, ring: () => void) {
      const timer = setTimeout(ring, ms);
      return () => clearTimeout(timer);
    },
    waitUntil: (work: Promise<void>) => void work,
  };
  const freeze = new SnapshotFreeze(host as never);
  let runningAgent = agentOf("one.a");
  const container = {
    async agent(_address: string, url: string, init: Init) {
      const { pathname } = new URL(url);
      requests.push(pathname);
      // Responds as the requested incarnation, however late.
      const headers = { "berth-incarnation": init.headers["berth-incarnation"] ?? "" };
      if (pathname !== "/v1/line") return new Response("{}", { headers });
      const [objectEnd, agentEnd] = socketPair();
      agentEnd.addEventListener("message", ({ data }) =>
        received.push(readCall(data)?.id ?? "none"),
      );
      agentEnd.addEventListener("close", () => closed.push(agentEnd));
      ends.push(agentEnd);
      signals.push(init.signal);
      return upgradeResponse(objectEnd, headers);
    },
  };
  const actor = {
    ...{ host, container, freeze },
    link: { recheck: async () => undefined },
    isCurrent: ({ incarnation }: { incarnation: string }) =>
      incarnation === runningAgent.incarnation,
  };
  const agentClient = new AgentClient(actor as never);
  const channel = new AgentChannel(actor as never);
  Object.assign(actor, { agentClient, channel });
  const command = (id: string) => ({ id, path: "/v1/exec", fence: 1, requestId: "r", body: "{}" });
  const request = (id: string) => channel.request(runningAgent as never, command(id));
  return {
    ...{ ends, closed, signals, requests, received, freeze, request },
    async open() {
      request("x1");
      request("x2");
      await vi.waitFor(() => expect(ends).toHaveLength(1));
      await Promise.resolve();
      return ends[0] as Socket;
    },
    startIncarnation(next: string) {
      runningAgent = agentOf(next);
    },
    sendCommand(id: string) {
      const admitted = { agent: runningAgent, fence: 1, token: undefined, end: () => {} };
      const { path, requestId, body } = command(id);
      const agentRequest = { method: "POST", path, requestId, body } as const;
      return agentClient.sendCommand(admitted as never, agentRequest, id);
    },
  };
}

function agentOf(incarnation: string) {
  return { incarnation, address: "", secret: "s" };
}

it("[U17] a channel carries nothing for another incarnation, even while it is open", async () => {
  const { open, startIncarnation, request, received } = createChannel();
  await open();
  const first = request("x3");
  first?.catch(() => undefined);
  expect(first).toBeDefined();
  await vi.waitFor(() => expect(received).toEqual(["x3"]));
  startIncarnation("two.b");
  expect(request("x4")).toBeUndefined();
  await vi.advanceTimersByTimeAsync(10);
  expect(received).toEqual(["x3"]);
  // The channel of the next incarnation closes this one, which ends its commands.
  const startedAt = Date.now();
  expect(request("x5")).toBeUndefined();
  await expect(first).rejects.toThrow("closed");
  expect(Date.now() - startedAt).toBeLessThan(limits.agentHeadersMs);
});

it("[U17] a channel that opens after its incarnation has ended is closed at once", async () => {
  const { request, startIncarnation, ends, closed } = createChannel();
  request("x1");
  request("x2");
  startIncarnation("two.b");
  await vi.waitFor(() => expect(ends).toHaveLength(1));
  await vi.advanceTimersByTimeAsync(10);
  expect(closed).toEqual(ends);
});

it("[U20] a channel that is idle for a second or two is closed, and the next command goes over HTTP", async () => {
  const { open, request, received, closed } = createChannel();
  const end = await open();
  const waiting = request("x3");
  await vi.advanceTimersByTimeAsync(5_000);
  expect([closed, received]).toEqual([[], ["x3"]]);
  end.send(writeResult({ id: "x3", status: 200, json: "{}" }));
  expect(await waiting).toMatchObject({ id: "x3", json: "{}" });
  // Much more often than once a second, because the clock follows the real one too.
  for (let n = 4; n < 20; n++) {
    await vi.advanceTimersByTimeAsync(300);
    const next = request(`x${n}`);
    end.send(writeResult({ id: `x${n}`, status: 200, json: "{}" }));
    expect(await next).toMatchObject({ id: `x${n}` });
  }
  expect(closed).toEqual([]);
  await vi.advanceTimersByTimeAsync(2_000);
  expect(closed).toEqual([end]);
  expect(request("x20")).toBeUndefined();
});

it.each([
  ["answers", false],
  ["does not answer", true],
])(
  "[U20] an agent that %s the closing handshake leaves no connection (aborted: %s)",
  async (_, isAborted) => {
    const { open, closed, signals } = createChannel();
    const end = await open();
    if (isAborted) end.close = () => {};
    await vi.advanceTimersByTimeAsync(2_000);
    expect(closed).toEqual([end]);
    await vi.advanceTimersByTimeAsync(2_000);
    expect(signals.map(({ aborted }) => aborted)).toEqual([isAborted]);
  },
);

it("[H7] a command over the channel waits for the end of a snapshot, however long that takes", async () => {
  const { open, sendCommand, freeze, requests } = createChannel();
  const end = await open();
  const running = sendCommand("x3");
  await vi.advanceTimersByTimeAsync(limits.agentHeadersMs / 2);
  const saving = Promise.withResolvers<void>();
  void freeze.freezeDuring(saving.promise);
  await vi.advanceTimersByTimeAsync(4 * limits.agentHeadersMs);
  // Sent before the freeze, received during it.
  end.send(writeResult({ id: "x3", status: deferredStatus, json: "" }));
  await vi.advanceTimersByTimeAsync(2 * limits.waitMaxMs);
  expect(requests).not.toContain("/v1/later/x3");
  saving.resolve();
  expect(await running).toMatchObject({ status: 200 });
  expect(requests.at(-1)).toBe("/v1/later/x3");
});

it("[H7] an agent that stays silent after a snapshot gets no more time than any other", async () => {
  const { open, sendCommand, freeze } = createChannel();
  await open();
  const error = sendCommand("x3").catch((failure: unknown) => failure);
  void freeze.freezeDuring(Promise.resolve());
  await vi.advanceTimersByTimeAsync(2 * limits.agentHeadersMs);
  expect(await error).toMatchObject(interrupted);
});
