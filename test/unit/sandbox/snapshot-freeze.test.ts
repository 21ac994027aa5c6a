/** What was asked of an agent before everything in its container stood still, for longer than anybody is patient with it. */
import { expect, it, vi } from "vitest";
import { agentProtocol } from "../../../src/protocol/internal/agent-wire.ts";
import { limits } from "../../../src/protocol/limits.ts";
import { answerAsAgent } from "../../fakes/agent/answer.ts";
import { FakeBerth } from "../../fakes/berth.ts";
import type { FakeMachine } from "../../fakes/container.ts";
import { timersOfOurs } from "./timers.ts";

timersOfOurs();

/** From here on it says nothing of processes, after a first word of a wait, until the answered function is called. */
function hush(machine: FakeMachine, waited: unknown): () => void {
  const { promise, resolve } = Promise.withResolvers<void>();
  machine.answers = async (request) => {
    const { agent } = machine;
    if (agent === undefined) throw new TypeError("connection refused");
    const { pathname } = new URL(request.url);
    if (pathname.endsWith("/wait")) {
      const body = new ReadableStream<Uint8Array>({
        async start(to) {
          to.enqueue(new TextEncoder().encode(" "));
          await promise;
          to.enqueue(new TextEncoder().encode(JSON.stringify(waited)));
          to.close();
        },
      });
      const { incarnation } = agent;
      const headers = {
        "berth-incarnation": incarnation,
        "berth-protocol": String(agentProtocol),
      };
      return new Response(body, { headers });
    }
    if (pathname === "/v1/processes") await orAborted(promise, request.signal);
    return answerAsAgent(agent, request);
  };
  return resolve;
}

async function withProcess() {
  const berth = new FakeBerth();
  const local = berth.bind({ tenant: "local" });
  const { id } = await local.create({ waitMs: 10_000 });
  const box = local.sandbox(id);
  const machine = berth.machine(id);
  const process = await box.startProcess({ command: "sleep 600" });
  return { box, machine, process };
}

function orAborted(work: Promise<void>, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    signal.addEventListener("abort", () => reject(new Error("aborted")));
    work.then(resolve);
  });
}

it("[H7] who asked before a checkpoint is answered when it has been made, however long that takes", async () => {
  const { box, machine, process } = await withProcess();
  const { incarnation } = await box.get();
  const goOn = hush(machine, { met: false, process });
  const asked = [box.waitForProcess(process.id), box.processes()];
  await vi.waitFor(() => {
    expect(machine.asked).toContain("GET /v1/processes");
    expect(machine.asked).toContain(`GET /v1/processes/${process.id}/wait`);
  });
  machine.fault = { verb: "snapshot", hold: true };
  const saving = box.makeCheckpoint();
  await vi.waitFor(() => expect(machine.held.size).toBe(1));
  await vi.advanceTimersByTimeAsync(3 * limits.streamSilenceMs);
  machine.release();
  await saving;
  // What goes on after that begins to count only then.
  await vi.advanceTimersByTimeAsync(limits.streamSilenceMs / 2);
  goOn();
  expect(await Promise.all(asked)).toMatchObject([
    { met: false, process: { id: process.id } },
    { processes: [{ id: process.id, state: "running" }] },
  ]);
  expect(await box.get()).toMatchObject({ state: "running", incarnation });
});

it("[H7] an agent that is silent after a checkpoint too is not waited for any longer", async () => {
  const { box, machine, process } = await withProcess();
  hush(machine, { met: false, process });
  const waiting = box.waitForProcess(process.id).catch((error: unknown) => error);
  await vi.waitFor(() => expect(machine.asked.at(-1)).toMatch(/wait$/));
  await box.makeCheckpoint();
  await vi.advanceTimersByTimeAsync(3 * limits.streamSilenceMs);
  expect(await waiting).toMatchObject({ code: "operation_interrupted" });
});

it("[H30] a tree of whose saving nothing is heard is given up in time, and the sandbox goes on", async () => {
  const { box, machine } = await withProcess();
  machine.fault = { verb: "snapshot", hold: true };
  const made = box.makeCheckpoint().catch((error: { code: string }) => error.code);
  await vi.advanceTimersByTimeAsync(limits.snapshotTimeoutMs + limits.waitMaxMs);
  const nothing = new Promise((resolve) => setTimeout(resolve, 5_000));
  await vi.advanceTimersByTimeAsync(5_000);
  expect(await Promise.race([made, nothing])).toBe("unavailable");
  expect((await box.checkpoints()).checkpoints).toEqual([]);
  expect((await box.exec({ command: "true" })).exitCode).toBe(0);
  machine.release();
  await box.pause();
  expect((await box.checkpoints()).checkpoints).toEqual([]);
});
