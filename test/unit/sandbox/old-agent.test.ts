/** An agent that speaks another protocol: one that a saved tree brought along, or that runs since an earlier version. */
import { describe, expect, it } from "vitest";
import { agentProtocol, agentProtocolMin } from "../../../src/protocol/internal/agent-wire.ts";
import { FakeBerth } from "../../fakes/berth.ts";

const others = [agentProtocolMin - 1, agentProtocol + 1, Number.NaN];
const reason = "agent_unsupported";

describe.each(others)("an agent of protocol %d", (protocol) => {
  it("[S32] is refused at the start, says what to do, and is not left running", async () => {
    const berth = new FakeBerth();
    const local = berth.bind({ tenant: "local" });
    const { id } = await local.create({ start: false });
    const box = local.sandbox(id);
    const machine = berth.machine(id);
    machine.protocol = protocol;
    for (let n = 0; n < 2; n++) {
      await expect(box.exec({ command: "echo no" })).rejects.toMatchObject({
        code: "start_failed",
        facts: { reason },
        hint: expect.stringMatching(/version/),
      });
    }
    expect(machine.calls.map((verb) => verb.split(" ")[0])).toEqual(["start", "destroy"]);
    expect(machine.agent).toBeUndefined();
    expect(machine.asked).toEqual(["GET /v1/health"]);
    expect(await box.get()).toMatchObject({ state: "failed", reason, restartable: false });
    machine.protocol = agentProtocol;
    expect(await box.start()).toMatchObject({ state: "running", files: "kept" });
    expect((await box.exec({ command: "echo on" })).stdout).toBe("on\n");
  });

  it("[S32] that runs already is given up before it is sent any work, for one that is spoken", async () => {
    const berth = new FakeBerth();
    const local = berth.bind({ tenant: "local" });
    const { id } = await local.create({ waitMs: 10_000 });
    const box = local.sandbox(id);
    const { agent } = berth.machine(id);
    if (agent === undefined) throw new Error("it runs");
    agent.protocol = protocol;
    await berth.evict(id);
    expect((await box.exec({ command: "echo on" })).stdout).toBe("on\n");
    expect(agent.ran).toEqual([]);
    expect(agent.ended).toBe(true);
    const { events } = await box.events();
    expect(events.map(({ event }) => event)).toContainEqual({
      type: "state",
      state: "failed",
      reason,
    });
  });

  it("[S32] keeps a restore from being told as done", async () => {
    const berth = new FakeBerth();
    const local = berth.bind({ tenant: "local" });
    const { id } = await local.create({ waitMs: 10_000 });
    const box = local.sandbox(id);
    const made = await box.makeCheckpoint();
    berth.machine(id).protocol = protocol;
    await expect(box.restore(made.id)).rejects.toMatchObject({
      code: "start_failed",
      facts: { reason },
      hint: expect.stringMatching(/another checkpoint/),
    });
  });
});
