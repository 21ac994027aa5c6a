import { describe, expect, test } from "vitest";
import { deferredStatus } from "../../../src/protocol/internal/agent-channel.ts";
import { Agent, kinds } from "../agent.ts";
import { Sessions } from "../sessions/sessions.ts";
import { ChannelClient } from "./channel.ts";

const stubborn = `setsid sh -c 'trap "" TERM; sleep 1000' & sleep 1000`;

describe.each(kinds)("the end of a channel, process trees in a %s", (tree) => {
  test.each([
    ["closed", (channel: ChannelClient) => channel.close()],
    ["cut", async (channel: ChannelClient) => channel.cut()],
  ])("[X57] a channel that is %s ends the commands it called, and no others", async (_how, end) => {
    await using agent = await Agent.start({ tree });
    const closing = await ChannelClient.open(agent);
    await using other = await ChannelClient.open(agent);
    const sessions = new Sessions(agent);
    const id = await sessions.make();
    const path = `/v1/sessions/${id}/exec`;
    const otherId = other.call({ command: "until [ -e go ]; do sleep 0.1; done; echo on" });
    const posted = agent.post({ command: "until [ -e go ]; do sleep 0.1; done; echo on" });
    await agent.untilRunning(2);
    closing.call({ command: stubborn });
    closing.call({ command: "echo begun; sleep 1000" }, { path });
    closing.call({ command: "touch never" }, { path });
    await agent.untilRunning(5);
    await end(closing);
    await agent.untilRunning(2);
    await agent.sh("touch go");
    expect(await (await posted).json()).toMatchObject({ stdout: "on\n" });
    expect(JSON.parse(await other.result(otherId))).toMatchObject({ stdout: "on\n" });
    // The session ended with its command.
    expect((await sessions.refused(sessions.run(id, "true"))).code).toBe("session_terminated");
    expect((await agent.sh("ls never")).exitCode).not.toBe(0);
  });

  test("[X57] a command with a key continues, and a repeated call by another channel joins it", async () => {
    await using agent = await Agent.start({ tree });
    const closing = await ChannelClient.open(agent);
    const command = "echo ran >> ran; until [ -e go ]; do sleep 0.1; done; cat ran";
    const call = { command, keep: true, execId: "kept" };
    closing.call(call);
    closing.call({ command: "sleep 1000" });
    await agent.untilRunning(2);
    closing.cut();
    await agent.untilRunning(1);
    await using channel = await ChannelClient.open(agent);
    const id = channel.call(call);
    await agent.sh("touch go");
    const result = JSON.parse(await channel.result(id));
    expect(result).toMatchObject({ execId: "kept", stdout: "ran\n" });
  });

  test("[X57] a deferred response waits after its channel has closed", async () => {
    await using agent = await Agent.start({ tree });
    const channel = await ChannelClient.open(agent);
    const id = channel.call({ command: "until [ -e go ]; do sleep 0.1; done; echo on" });
    expect((await channel.response(id)).status).toBe(deferredStatus);
    await channel.close();
    const response = await agent.request(`/v1/later/${id}`);
    await agent.sh("touch go");
    expect(JSON.parse(await response.text())).toMatchObject({ stdout: "on\n" });
  });

  test("[X59] a drain ends what a channel called below the fence, and the caller gets the reason", async () => {
    await using agent = await Agent.start({ tree });
    await using channel = await ChannelClient.open(agent);
    const below = channel.call({ command: "sleep 1000" }, { fence: 1 });
    await agent.untilRunning(1);
    const drained = agent.raiseFence(2, true);
    const stream = Array.from({ length: 50 }, () =>
      channel.call({ command: "true" }, { fence: 1 }),
    );
    expect(await drained).toEqual({ fence: 2, left: 0 });
    const above = await channel.request({ command: "echo above" }, { fence: 2 });
    expect(above.answer).toMatchObject({ stdout: "above\n" });
    const reason = { code: "operation_interrupted", admitted: true, reason: "lease_lost" };
    expect(JSON.parse(await channel.result(below)).error).toMatchObject(reason);
    const statuses = await Promise.all(stream.map((id) => channel.response(id)));
    for (const { status } of statuses) expect([200, 409, 502, deferredStatus]).toContain(status);
    expect(agent.left()).toEqual([]);
  });

  test("[X59] an agent that stops responds to waiting calls of a channel, and ends commands whose responses are deferred", async () => {
    await using agent = await Agent.start({ tree });
    const channel = await ChannelClient.open(agent);
    const waiting = channel.call({ command: stubborn });
    expect((await channel.response(waiting)).status).toBe(deferredStatus);
    const called = channel.call({ command: "sleep 1000" });
    await agent.untilRunning(2);
    await agent.stop();
    expect(JSON.parse((await channel.response(called)).json).error).toMatchObject({
      ...{ code: "operation_interrupted", reason: "container_stopped" },
    });
    await channel.waitForClose();
  });
});
