import { describe, expect, test } from "vitest";
import { later } from "../../../src/protocol/internal/agent-channel.ts";
import { Agent, kinds } from "../agent.ts";
import { until } from "../until.ts";
import { Line } from "./channel.ts";

describe.each(kinds)("lines under load, trees held by %s", (tree) => {
  const running = async (agent: Agent) => {
    const health = (await (await agent.request("/v1/health")).json()) as { running: number };
    return health.running;
  };

  test("[X58] descriptors and memory are back where they were after many calls and many lines", async () => {
    const agent = await Agent.start({ tree });
    const calls = tree === "cgroup" ? 2_000 : 200;
    const kindsOfCalls = [
      { command: "true" },
      { argv: ["cat"], stdin: "x".repeat(1000) },
      { command: "head -c 60000 /dev/zero | tr '\\0' x" },
      { command: "true", cwd: "/nope" },
      { argv: ["no-such-program"] },
      { command: "head -c 100000 /dev/zero" },
    ];
    const round = async (count: number) => {
      const line = await Line.open(agent);
      const each = async (stream: number) => {
        for (let at = stream; at < count; at += 16) {
          const id = `c${at}`;
          line.call(kindsOfCalls[at % kindsOfCalls.length], { id });
          const told = await line.answer(id);
          if (told.status === later) await (await agent.request(`/v1/later/${id}`)).text();
        }
      };
      await Promise.all(Array.from({ length: 16 }, (_, stream) => each(stream)));
      expect(line.told).toHaveLength(count);
      await line.close();
    };
    const comeAndGo = async (count: number) => {
      for (let at = 0; at < count; at++) {
        const line = await Line.open(agent);
        line.call({ command: "sleep 1000" });
        if (at % 2 === 0) line.cut();
        else await line.close();
      }
      await until("nothing runs", async () => (await running(agent)) === 0);
    };
    // Warm: what is opened or compiled once is part of where it was.
    await round(200);
    await comeAndGo(20);
    await until("the dead are collected", () => agent.zombies() === 0);
    const [descriptors, memory] = [agent.descriptors(), agent.memoryKiB()];
    await round(calls);
    await comeAndGo(calls / 10);
    await until("descriptors are back", () => agent.descriptors() <= descriptors);
    await agent.keepsLessThan(48 * 1024, memory);
    expect(agent.log).toBe("");
    await agent.stop();
  });

  test.runIf(tree === kinds[0])(
    "[X58] a line whose other end takes nothing is closed before it fills the agent",
    async () => {
      const agent = await Agent.start({ tree });
      const line = await Line.open(agent);
      await line.ask({ command: "true" });
      const memory = agent.memoryKiB();
      line.pause();
      // 60 KB each: far beyond what a socket waits for, and the kernel holds.
      const calls = 600;
      for (let at = 0; at < calls; at += 8) {
        for (let more = 0; more < 8; more++) {
          line.call({ command: "head -c 60000 /dev/zero | tr '\\0' x" });
        }
        await until("they have ended", async () => (await running(agent)) === 0);
      }
      line.resume();
      await line.ended();
      expect(line.told.length).toBeLessThan(calls);
      await agent.keepsLessThan(48 * 1024, memory);
      expect((await agent.sh("echo on")).stdout).toBe("on\n");
      await agent.stop();
    },
  );
});
