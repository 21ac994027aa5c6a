import { describe, expect, test } from "vitest";
import { later } from "../../../src/protocol/internal/agent-channel.ts";
import { Agent, kinds } from "../agent.ts";
import { Sessions } from "../sessions/sessions.ts";
import { until } from "../until.ts";
import { Line } from "./channel.ts";

const stubborn = `setsid sh -c 'trap "" TERM; sleep 1000' & sleep 1000`;

describe.each(kinds)("the end of a line, trees held by %s", (tree) => {
  const running = async (agent: Agent) => {
    const health = (await (await agent.request("/v1/health")).json()) as { running: number };
    return health.running;
  };

  test.each([
    ["closed", (line: Line) => line.close()],
    ["cut", async (line: Line) => line.cut()],
  ])(
    "[X57] one that is %s takes along what was called by it, and nothing of others",
    async (_how, end) => {
      const agent = await Agent.start({ tree });
      const [gone, other] = [await Line.open(agent), await Line.open(agent)];
      const sessions = new Sessions(agent);
      const id = await sessions.make();
      const path = `/v1/sessions/${id}/exec`;
      const kept = other.call({ command: "until [ -e go ]; do sleep 0.1; done; echo on" });
      const posted = agent.post({ command: "until [ -e go ]; do sleep 0.1; done; echo on" });
      await until("both run", async () => (await running(agent)) === 2);
      gone.call({ command: stubborn });
      gone.call({ command: "echo begun; sleep 1000" }, { path });
      gone.call({ command: "touch never" }, { path });
      await until("all run", async () => (await running(agent)) === 5);
      await end(gone);
      await until("its commands have ended", async () => (await running(agent)) === 2);
      await agent.sh("touch go");
      expect(await (await posted).json()).toMatchObject({ stdout: "on\n" });
      const { status, json } = await other.answer(kept);
      const answer =
        status === later ? await (await agent.request(`/v1/later/${kept}`)).text() : json;
      expect(JSON.parse(answer)).toMatchObject({ stdout: "on\n" });
      // Its shell was ended under the command.
      expect((await sessions.refused(sessions.run(id, "true"))).code).toBe("session_terminated");
      expect((await agent.sh("ls never")).exitCode).not.toBe(0);
      await other.close();
      await agent.stop();
    },
  );

  test("[X57] a command with a key goes on, and who asks again by another line joins it", async () => {
    const agent = await Agent.start({ tree });
    const gone = await Line.open(agent);
    const command = "echo ran >> ran; until [ -e go ]; do sleep 0.1; done; cat ran";
    const call = { command, keep: true, execId: "kept" };
    gone.call(call);
    gone.call({ command: "sleep 1000" });
    await until("both run", async () => (await running(agent)) === 2);
    gone.cut();
    await until("the one without a key has ended", async () => (await running(agent)) === 1);
    const line = await Line.open(agent);
    const id = line.call(call);
    await agent.sh("touch go");
    const { status, json } = await line.answer(id);
    const answer = status === later ? await (await agent.request(`/v1/later/${id}`)).text() : json;
    expect(JSON.parse(answer)).toMatchObject({ execId: "kept", stdout: "ran\n" });
    await line.close();
    await agent.stop();
  });

  test("[X57] what was told to be taken outlives its line until it is", async () => {
    const agent = await Agent.start({ tree });
    const line = await Line.open(agent);
    const id = line.call({ command: "until [ -e go ]; do sleep 0.1; done; echo on" });
    expect((await line.answer(id)).status).toBe(later);
    await line.close();
    const taken = await agent.request(`/v1/later/${id}`);
    await agent.sh("touch go");
    expect(JSON.parse(await taken.text())).toMatchObject({ stdout: "on\n" });
    await agent.stop();
  });

  test("[X59] a drain ends what was called by a line below it, and its caller is told why", async () => {
    const agent = await Agent.start({ tree });
    const line = await Line.open(agent);
    const below = line.call({ command: "sleep 1000" }, { fence: 1 });
    await until("it runs", async () => (await running(agent)) === 1);
    const body = JSON.stringify({ fence: 2, drain: true, waitMs: 20_000 });
    const fenced = agent.request("/v1/fence", { method: "POST", body });
    const stream = Array.from({ length: 50 }, () => line.call({ command: "true" }, { fence: 1 }));
    expect(await (await fenced).json()).toEqual({ fence: 2, left: 0 });
    const above = await line.ask({ command: "echo above" }, { fence: 2 });
    expect(above.answer).toMatchObject({ stdout: "above\n" });
    const why = { code: "operation_interrupted", admitted: true, reason: "lease_lost" };
    expect(JSON.parse((await line.answer(below)).json).error).toMatchObject(why);
    for (const id of stream) expect([200, 409, 502]).toContain((await line.answer(id)).status);
    expect(agent.left()).toEqual([]);
    await line.close();
    await agent.stop();
  });

  test("[X59] an agent that is told to end tells who waits by a line, and takes along what waits to be taken", async () => {
    const agent = await Agent.start({ tree });
    const line = await Line.open(agent);
    const waiting = line.call({ command: stubborn });
    expect((await line.answer(waiting)).status).toBe(later);
    const called = line.call({ command: "sleep 1000" });
    await until("both run", async () => (await running(agent)) === 2);
    await agent.stop();
    expect(JSON.parse((await line.answer(called)).json).error).toMatchObject({
      ...{ code: "operation_interrupted", reason: "container_stopped" },
    });
    await line.ended();
  });
});
