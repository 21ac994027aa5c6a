/** Requests that were sent before a snapshot froze the container for longer than any timeout. */
import { expect, it, vi } from "vitest";
import { agentProtocol } from "../../../src/protocol/internal/agent-wire.ts";
import { limits } from "../../../src/protocol/limits.ts";
import { respondAsAgent } from "../../fakes/agent/respond.ts";
import type { FakeContainer } from "../../fakes/container.ts";
import { interrupted, startSandbox, useFakeTimers } from "./harness.ts";

useFakeTimers();

/**
 * The agent keeps requests about processes open, a wait after its first byte, until the returned function is called.
 */
function silenceProcesses(container: FakeContainer, waited: unknown): () => void {
  const { promise, resolve } = Promise.withResolvers<void>();
  container.respond = async (request) => {
    const { agent } = container;
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
      const headers = { "berth-incarnation": incarnation, "berth-protocol": String(agentProtocol) };
      return new Response(body, { headers });
    }
    if (pathname === "/v1/processes") await orAborted(promise, request.signal);
    return respondAsAgent(agent, request);
  };
  return resolve;
}

async function withProcess() {
  const { sandbox, container } = await startSandbox();
  const process = await sandbox.startProcess({ command: "sleep 600" });
  return { sandbox, container, process };
}

function orAborted(work: Promise<void>, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    signal.addEventListener("abort", () => reject(new Error("aborted")));
    work.then(resolve);
  });
}

it("[H7] a request from before a checkpoint is answered after it, however long that takes", async () => {
  const { sandbox, container, process } = await withProcess();
  const { incarnation } = await sandbox.get();
  const resume = silenceProcesses(container, { met: false, process });
  const pending = [sandbox.waitForProcess(process.id), sandbox.processes()];
  await vi.waitFor(() => {
    expect(container.requests).toContain("GET /v1/processes");
    expect(container.requests).toContain(`GET /v1/processes/${process.id}/wait`);
  });
  container.fault = { verb: "snapshot", hold: true };
  const saving = sandbox.makeCheckpoint();
  await vi.waitFor(() => expect(container.held.size).toBe(1));
  await vi.advanceTimersByTimeAsync(3 * limits.streamTimeoutMs);
  container.release();
  await saving;
  // After the freeze the timeouts start again.
  await vi.advanceTimersByTimeAsync(limits.streamTimeoutMs / 2);
  resume();
  expect(await Promise.all(pending)).toMatchObject([
    { met: false, process: { id: process.id } },
    { processes: [{ id: process.id, state: "running" }] },
  ]);
  expect(await sandbox.get()).toMatchObject({ state: "running", incarnation });
});

it("[H7] an agent that stays silent after a checkpoint gets no more time than any other", async () => {
  const { sandbox, container, process } = await withProcess();
  silenceProcesses(container, { met: false, process });
  const waiting = sandbox.waitForProcess(process.id).catch((error: unknown) => error);
  await vi.waitFor(() => expect(container.requests.at(-1)).toMatch(/wait$/));
  await sandbox.makeCheckpoint();
  await vi.advanceTimersByTimeAsync(3 * limits.streamTimeoutMs);
  expect(await waiting).toMatchObject(interrupted);
});

it("[H30] a snapshot without a result is given up in time, and the sandbox continues", async () => {
  const { sandbox, container } = await withProcess();
  container.fault = { verb: "snapshot", hold: true };
  const made = sandbox.makeCheckpoint().catch((error: { code: string }) => error.code);
  await vi.advanceTimersByTimeAsync(limits.snapshotTimeoutMs + limits.waitMaxMs);
  expect(await made).toBe("unavailable");
  expect((await sandbox.checkpoints()).checkpoints).toEqual([]);
  expect((await sandbox.exec({ command: "true" })).exitCode).toBe(0);
  container.release();
  await sandbox.pause();
  expect((await sandbox.checkpoints()).checkpoints).toEqual([]);
});
