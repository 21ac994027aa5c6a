/** The line to an agent, where time and the moment of its end are the test's. */
import { expect, it, vi } from "vitest";
import { AgentLine } from "../../../src/objects/sandbox/agent/agent-channel.ts";
import { askCommand } from "../../../src/objects/sandbox/agent/agent-request.ts";
import { Stillness } from "../../../src/objects/sandbox/lifecycle/snapshot-freeze.ts";
import { later, readCall, writeAnswer } from "../../../src/protocol/internal/agent-channel.ts";
import { limits } from "../../../src/protocol/limits.ts";
import { type Socket, socketPair, upgraded } from "../../fakes/agent/socket-pair.ts";
import { FakeBerth } from "../../fakes/berth.ts";
import { timersOfOurs } from "./timers.ts";

timersOfOurs();

const byLine = "LINE /v1/exec";

async function withLine() {
  const berth = new FakeBerth();
  const { id } = await berth.bind({ tenant: "local" }).create({ waitMs: 10_000 });
  const machine = berth.machine(id);
  machine.line.isThere = true;
  const box = berth.bind({ tenant: "local" }).sandbox(id);
  const run = (command: string) => box.exec({ command });
  for (let n = 0; n < 3; n++) await run("true");
  expect(machine.asked.at(-1)).toBe(byLine);
  return { machine, box, run, ran: () => machine.agent?.ran ?? [] };
}

it("[U16] that is silent is waited for as an agent is, and all who called by it are told the same, once", async () => {
  const { machine, box, run, ran } = await withLine();
  machine.line.fault = "silent";
  const told: unknown[] = [];
  for (const command of ["echo one", "echo two"]) {
    run(command).catch((error: unknown) => told.push(error));
  }
  await vi.waitFor(() => expect(ran()).toContain("echo two"));
  await vi.advanceTimersByTimeAsync(limits.agentHeadersMs / 2);
  expect(told).toEqual([]);
  await vi.advanceTimersByTimeAsync(limits.agentHeadersMs);
  await vi.waitFor(() => expect(told).toHaveLength(2));
  for (const one of told) {
    expect(one).toMatchObject({ code: "operation_interrupted", facts: { admitted: "unknown" } });
  }
  expect((await run("echo on")).stdout).toBe("on\n");
  expect(ran().slice(3)).toEqual(["echo one", "echo two", "echo on"]);
  expect(await box.get()).toMatchObject({ state: "running" });
});

it("[U16] that breaks off is told as that, and nobody's command is sent again", async () => {
  const { machine, run, ran } = await withLine();
  machine.line.fault = "cut";
  const at = Date.now();
  await expect(run("echo cut")).rejects.toMatchObject({
    code: "operation_interrupted",
    facts: { admitted: "unknown" },
  });
  expect(Date.now() - at).toBeLessThan(limits.agentHeadersMs);
  machine.line.fault = undefined;
  const { length } = machine.asked;
  for (let n = 0; n < 3; n++) await run("echo on");
  expect(machine.asked.slice(length)).not.toContain("GET /v1/line");
  expect(ran().slice(3)).toEqual(["echo cut", "echo on", "echo on", "echo on"]);
});

type Init = { headers: Record<string, string>; signal: AbortSignal };

/** An object's line to an agent of which the test has the other end. */
function alone() {
  const ends: Socket[] = [];
  const closed: Socket[] = [];
  const signals: AbortSignal[] = [];
  const asked: string[] = [];
  const heard: string[] = [];
  const host = {
    clock: () => Date.now(),
    timer(ms: number, ring: () => void) {
      const timer = setTimeout(ring, ms);
      return () => clearTimeout(timer);
    },
    background: (work: Promise<void>) => void work,
  };
  const stillness = new Stillness(host as never);
  let incarnation = "one.a";
  const container = {
    async agent(_address: string, url: string, init: Init) {
      const { pathname } = new URL(url);
      asked.push(pathname);
      // It is the one that was meant, however long it takes.
      const headers = { "berth-incarnation": init.headers["berth-incarnation"] ?? "" };
      if (pathname !== "/v1/line") return new Response("{}", { headers });
      const [theirs, ours] = socketPair();
      ours.addEventListener("message", ({ data }) => heard.push(readCall(data)?.id ?? "none"));
      ours.addEventListener("close", () => closed.push(ours));
      ends.push(ours);
      signals.push(init.signal);
      return upgraded(theirs, headers);
    },
  };
  const reach = {
    container,
    timer: stillness.silence,
    awake: () => stillness.over(),
  };
  const actor = {
    ...{ host, reach, stillness },
    patientReach: { ...reach, awake: () => stillness.over(limits.snapshotTimeoutMs) },
    link: { confirm: async () => undefined },
    known: { sandbox: { state: { name: "running", life: lifeOf(incarnation) } } },
    line: undefined as AgentLine | undefined,
  };
  const line = new AgentLine(actor as never);
  actor.line = line;
  const call = (id: string) => ({ id, path: "/v1/exec", fence: 1, requestId: "r", body: "{}" });
  const ask = (id: string) => line.ask(lifeOf(incarnation) as never, call(id));
  return {
    ...{ ends, closed, signals, asked, heard, stillness, ask },
    async open() {
      ask("x1");
      ask("x2");
      await vi.waitFor(() => expect(ends).toHaveLength(1));
      await Promise.resolve();
      return ends[0] as Socket;
    },
    becomes(next: string) {
      incarnation = next;
      actor.known.sandbox.state.life = lifeOf(next);
    },
    command(id: string) {
      const passed = { life: lifeOf(incarnation), fence: 1, token: undefined, end: () => {} };
      const { path, requestId, body } = call(id);
      const asks = { method: "POST", path, requestId, body } as const;
      return askCommand(actor as never, passed as never, asks, id);
    },
  };
}

function lifeOf(incarnation: string) {
  return { incarnation, address: "", secret: "s" };
}

it("[U17] carries nothing of another life, though it stands", async () => {
  const { open, becomes, ask, heard } = alone();
  await open();
  const first = ask("x3");
  first?.catch(() => undefined);
  expect(first).toBeDefined();
  await vi.waitFor(() => expect(heard).toEqual(["x3"]));
  becomes("two.b");
  expect(ask("x4")).toBeUndefined();
  await vi.advanceTimersByTimeAsync(10);
  expect(heard).toEqual(["x3"]);
  // The line of the next life ends it, and who waits is told.
  const at = Date.now();
  expect(ask("x5")).toBeUndefined();
  await expect(first).rejects.toThrow("ended");
  expect(Date.now() - at).toBeLessThan(limits.agentHeadersMs);
});

it("[U17] that comes up when its life is over is closed at once", async () => {
  const { ask, becomes, ends, closed } = alone();
  ask("x1");
  ask("x2");
  becomes("two.b");
  await vi.waitFor(() => expect(ends).toHaveLength(1));
  await vi.advanceTimersByTimeAsync(10);
  expect(closed).toEqual(ends);
});

it("[U20] that is not called for a second or two is closed, and what comes then goes by a request", async () => {
  const { open, ask, heard, closed } = alone();
  const end = await open();
  const waiting = ask("x3");
  await vi.advanceTimersByTimeAsync(5_000);
  expect([closed, heard]).toEqual([[], ["x3"]]);
  end.send(writeAnswer({ id: "x3", status: 200, json: "{}" }));
  expect(await waiting).toMatchObject({ id: "x3", json: "{}" });
  for (let n = 4; n < 9; n++) {
    await vi.advanceTimersByTimeAsync(900);
    const again = ask(`x${n}`);
    end.send(writeAnswer({ id: `x${n}`, status: 200, json: "{}" }));
    expect(await again).toMatchObject({ id: `x${n}` });
  }
  expect(closed).toEqual([]);
  await vi.advanceTimersByTimeAsync(2_000);
  expect(closed).toEqual([end]);
  expect(ask("x9")).toBeUndefined();
});

it.each([
  ["answers", false],
  ["does not answer", true],
])("[U20] whose agent %s its end leaves no connection: cut off is %s", async (_, isCut) => {
  const { open, closed, signals } = alone();
  const end = await open();
  if (isCut) end.close = () => {};
  await vi.advanceTimersByTimeAsync(2_000);
  expect(closed).toEqual([end]);
  await vi.advanceTimersByTimeAsync(2_000);
  expect(signals.map(({ aborted }) => aborted)).toEqual([isCut]);
});

it("[H7] what was asked by a line is waited for while files are being saved, however long that takes", async () => {
  const { open, command, stillness, asked } = alone();
  const end = await open();
  const told = command("x3");
  await vi.advanceTimersByTimeAsync(limits.agentHeadersMs / 2);
  const saving = Promise.withResolvers<void>();
  void stillness.during(saving.promise);
  await vi.advanceTimersByTimeAsync(4 * limits.agentHeadersMs);
  // It was said before, and is heard in between.
  end.send(writeAnswer({ id: "x3", status: later, json: "" }));
  await vi.advanceTimersByTimeAsync(2 * limits.waitMaxMs);
  expect(asked).not.toContain("/v1/later/x3");
  saving.resolve();
  expect(await told).toMatchObject({ status: 200 });
  expect(asked.at(-1)).toBe("/v1/later/x3");
});

it("[H7] an agent that is silent by its line after that too is not waited for any longer", async () => {
  const { open, command, stillness } = alone();
  await open();
  const told = command("x3").catch((error: unknown) => error);
  void stillness.during(Promise.resolve());
  await vi.advanceTimersByTimeAsync(2 * limits.agentHeadersMs);
  expect(await told).toMatchObject({ code: "operation_interrupted" });
});
