/** What is seen of a sandbox whose container died while nobody was looking, by who only asks how it is. */
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { limits } from "../../../src/protocol/limits.ts";
import { answerAsAgent } from "../../fakes/agent/answer.ts";
import { FakeBerth } from "../../fakes/berth.ts";

const look = "GET /v1/health";
const lost = { exitCode: null, signal: "SIGKILL", reason: "exited" } as const;

beforeEach(() => void vi.useFakeTimers({ toFake: ["Date"], now: Date.now() }));
afterEach(() => vi.useRealTimers());

const later = (ms: number) => vi.setSystemTime(Date.now() + ms);

async function running(call = {}) {
  const berth = new FakeBerth();
  const local = berth.bind({ tenant: "local" });
  const { id } = await local.create({ waitMs: 10_000, ...call });
  return { berth, id, box: local.sandbox(id), machine: berth.machine(id) };
}

describe("a look at a sandbox", () => {
  it("[S31] finds out that its container died unheard, also in a fresh object, and starts nothing", async () => {
    const { berth, box, machine, id } = await running({ onIdle: "none" });
    machine.die(lost);
    later(limits.agentQuietMs);
    const seen = { state: "failed", reason: "container_lost", restartable: true };
    expect(await box.get()).toMatchObject(seen);
    expect((await box.start()).state).toBe("running");
    const starts = machine.calls.length;
    await berth.evict(id);
    machine.die(lost);
    expect(await box.get()).toMatchObject(seen);
    expect(machine.calls).toHaveLength(starts);
    expect((await berth.bind({ tenant: "local" }).list({})).sandboxes).toMatchObject([
      { id, state: "failed" },
    ]);
  });

  it("[S31] asks only an agent that was quiet, writes nothing down, and is no work", async () => {
    const { berth, box, machine, id } = await running({ idleTimeoutMs: 10_000 });
    machine.asked.length = 0;
    expect((await box.get()).state).toBe("running");
    expect(machine.asked).toEqual([]);
    for (let n = 0; n < 12; n++) {
      await berth.evict(id);
      later(1_000);
      const { fence } = machine.agent ?? { fence: -1 };
      expect((await box.get()).state).toBe("running");
      expect(machine.agent?.fence).toBe(fence);
    }
    expect(machine.asked).toEqual(Array(12).fill(look));
    await berth.ring(id);
    expect((await box.get()).state).toBe("paused");
    // Where none runs nobody is asked, and none is started.
    later(60_000);
    machine.asked.length = 0;
    expect((await box.get()).state).toBe("paused");
    expect(machine.asked).toEqual([]);
    expect(machine.agent).toBeUndefined();
  });

  it("[S16] takes no broken answer for rest: what runs is not ended because it could not be told", async () => {
    const { berth, box, machine, id } = await running({ idleTimeoutMs: 10_000 });
    const { id: process } = await box.startProcess({ command: "sleep 600" });
    const answer = (request: Request) => {
      const { agent } = machine;
      if (agent === undefined) throw new Error("it has no agent");
      if (new URL(request.url).pathname !== "/v1/work") return answerAsAgent(agent, request);
      const headers = { "berth-incarnation": agent.incarnation, "berth-protocol": "1" };
      return new Response('{"idleMs":', { headers });
    };
    machine.answers = answer;
    for (let n = 0; n < 3; n++) {
      later(11_000);
      machine.asked.length = 0;
      await berth.ring(id);
      expect(machine.asked).toContain("GET /v1/work");
      expect((await box.get()).state).toBe("running");
    }
    expect((await box.process(process)).state).toBe("running");
  });

  it("[S31] waits for an agent that hangs a second and no longer, however many look", async () => {
    const { box, machine } = await running();
    machine.fault = { verb: "agent", silent: true };
    later(limits.agentQuietMs);
    machine.asked.length = 0;
    const began = performance.now();
    const all = await Promise.all(Array.from({ length: 20 }, () => box.get()));
    expect(all.map(({ state }) => state)).toEqual(Array(20).fill("running"));
    expect(performance.now() - began).toBeLessThan(limits.agentHeadersMs / 2);
    expect(machine.asked).toEqual([look]);
  });

  it("[S31] while files are being saved takes the silence for nothing", async () => {
    const { box, machine } = await running();
    machine.fault = { verb: "snapshot", hold: true };
    const saving = box.makeCheckpoint();
    await vi.waitFor(() => expect(machine.held.size).toBe(1));
    later(limits.agentQuietMs);
    machine.asked.length = 0;
    expect((await box.get()).state).toBe("running");
    expect(machine.asked).toEqual([]);
    machine.release();
    await saving;
  });
});
