/** What a status read shows of a sandbox whose container exited unnoticed. */
import { describe, expect, it, vi } from "vitest";
import { limits } from "../../../src/protocol/limits.ts";
import { respondAsAgent } from "../../fakes/agent/respond.ts";
import { advanceClock, startSandbox, useFakeClock } from "./harness.ts";

const probe = "GET /v1/health";
const lost = { exitCode: null, signal: "SIGKILL", reason: "exited" } as const;

useFakeClock();

describe("a status read of a sandbox", () => {
  it("[S31] notices that its container has exited, also in a fresh object, and starts nothing", async () => {
    const { berth, sandbox, container, id } = await startSandbox({ onIdle: "none" });
    container.exitWith(lost);
    advanceClock(limits.agentProbeAfterMs);
    const failed = { state: "failed", reason: "container_lost", restartable: true };
    expect(await sandbox.get()).toMatchObject(failed);
    expect((await sandbox.start()).state).toBe("running");
    const starts = container.calls.length;
    await berth.evict(id);
    container.exitWith(lost);
    expect(await sandbox.get()).toMatchObject(failed);
    expect(container.calls).toHaveLength(starts);
    expect((await berth.bind({ tenant: "local" }).list({})).sandboxes).toMatchObject([
      { id, state: "failed" },
    ]);
  });

  it("[S31] probes only an agent that was quiet, writes no row, and does not count as use", async () => {
    const { berth, sandbox, container, id } = await startSandbox({ idleTimeoutMs: 10_000 });
    container.requests.length = 0;
    expect((await sandbox.get()).state).toBe("running");
    expect(container.requests).toEqual([]);
    for (let n = 0; n < 12; n++) {
      await berth.evict(id);
      advanceClock(1_000);
      const { fence } = container.agent ?? { fence: -1 };
      expect((await sandbox.get()).state).toBe("running");
      expect(container.agent?.fence).toBe(fence);
    }
    expect(container.requests).toEqual(Array(12).fill(probe));
    await berth.ringAlarm(id);
    expect((await sandbox.get()).state).toBe("paused");
    // Without a container there is no probe and no start.
    advanceClock(60_000);
    container.requests.length = 0;
    expect((await sandbox.get()).state).toBe("paused");
    expect(container.requests).toEqual([]);
    expect(container.agent).toBeUndefined();
  });

  it("[S16] does not take a truncated response for idleness: what runs is not ended", async () => {
    const { berth, sandbox, container, id } = await startSandbox({ idleTimeoutMs: 10_000 });
    const { id: process } = await sandbox.startProcess({ command: "sleep 600" });
    const answer = (request: Request) => {
      const { agent } = container;
      if (agent === undefined) throw new Error("it has no agent");
      if (new URL(request.url).pathname !== "/v1/work") return respondAsAgent(agent, request);
      const headers = { "berth-incarnation": agent.incarnation, "berth-protocol": "1" };
      return new Response('{"idleMs":', { headers });
    };
    container.respond = answer;
    for (let n = 0; n < 3; n++) {
      advanceClock(11_000);
      container.requests.length = 0;
      await berth.ringAlarm(id);
      expect(container.requests).toContain("GET /v1/work");
      expect((await sandbox.get()).state).toBe("running");
    }
    expect((await sandbox.process(process)).state).toBe("running");
  });

  it("[S31] waits at most a second for an agent that hangs, however many callers read", async () => {
    const { sandbox, container } = await startSandbox();
    container.fault = { verb: "agent", silent: true };
    advanceClock(limits.agentProbeAfterMs);
    container.requests.length = 0;
    vi.useFakeTimers({ toFake: ["Date", "setTimeout", "clearTimeout", "performance"] });
    const reads = Promise.all(Array.from({ length: 20 }, () => sandbox.get()));
    await vi.advanceTimersByTimeAsync(1_000);
    const all = await reads;
    expect(all.map(({ state }) => state)).toEqual(Array(20).fill("running"));
    expect(container.requests).toEqual([probe]);
  });

  it("[S31] ignores silence during a snapshot", async () => {
    const { sandbox, container } = await startSandbox();
    container.fault = { verb: "snapshot", hold: true };
    const saving = sandbox.makeCheckpoint();
    await vi.waitFor(() => expect(container.held.size).toBe(1));
    advanceClock(limits.agentProbeAfterMs);
    container.requests.length = 0;
    expect((await sandbox.get()).state).toBe("running");
    expect(container.requests).toEqual([]);
    container.release();
    await saving;
  });
});
