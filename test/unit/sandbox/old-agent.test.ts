/** An agent with another protocol: one that came with a saved tree, or that runs since an earlier version. */
import { describe, expect, it } from "vitest";
import { agentProtocol, agentProtocolMin } from "../../../src/protocol/internal/agent-wire.ts";
import { startSandbox } from "./harness.ts";

const others = [agentProtocolMin - 1, agentProtocol + 1, Number.NaN];
const reason = "agent_unsupported";

describe.each(others)("an agent of protocol %d", (protocol) => {
  it("[S32] is refused at the start with a hint, and does not stay running", async () => {
    const { sandbox, container } = await startSandbox({ start: false });
    container.protocol = protocol;
    for (let n = 0; n < 2; n++) {
      await expect(sandbox.exec({ command: "echo no" })).rejects.toMatchObject({
        code: "start_failed",
        facts: { reason },
        hint: expect.stringMatching(/version/),
      });
    }
    expect(container.calls.map((verb) => verb.split(" ")[0])).toEqual(["start", "destroy"]);
    expect(container.agent).toBeUndefined();
    expect(container.requests).toEqual(["GET /v1/health"]);
    expect(await sandbox.get()).toMatchObject({ state: "failed", reason, restartable: false });
    container.protocol = agentProtocol;
    expect(await sandbox.start()).toMatchObject({ state: "running", files: "kept" });
    expect((await sandbox.exec({ command: "echo on" })).stdout).toBe("on\n");
  });

  it("[S32] that already runs is replaced before it gets any work", async () => {
    const { berth, id, sandbox, container } = await startSandbox();
    const { agent } = container;
    if (agent === undefined) throw new Error("it runs");
    agent.protocol = protocol;
    await berth.evict(id);
    expect((await sandbox.exec({ command: "echo on" })).stdout).toBe("on\n");
    expect(agent.commandsRun).toEqual([]);
    expect(agent.ended).toBe(true);
    const { events } = await sandbox.events();
    expect(events.map(({ event }) => event)).toContainEqual({
      type: "state",
      state: "failed",
      reason,
    });
  });

  it("[S32] makes a restore fail", async () => {
    const { sandbox, container } = await startSandbox();
    const made = await sandbox.makeCheckpoint();
    container.protocol = protocol;
    await expect(sandbox.restore(made.id)).rejects.toMatchObject({
      code: "start_failed",
      facts: { reason },
      hint: expect.stringMatching(/another checkpoint/),
    });
  });
});
