import { describe, expect, test } from "vitest";
import { until } from "../../until.ts";
import { Agent, kinds } from "../agent.ts";
import { ChannelClient } from "./channel.ts";

describe.each(kinds)("channels under load, process trees in a %s", (tree) => {
  test("[X58] descriptors and memory return to their level after many calls and many channels", async () => {
    await using agent = await Agent.start({ tree });
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
      await using channel = await ChannelClient.open(agent);
      const each = async (stream: number) => {
        for (let index = stream; index < count; index += 16) {
          const id = `c${index}`;
          channel.call(kindsOfCalls[index % kindsOfCalls.length], { id });
          await channel.result(id);
        }
      };
      await Promise.all(Array.from({ length: 16 }, (_, stream) => each(stream)));
      expect(channel.responses).toHaveLength(count);
    };
    const openAndClose = async (count: number) => {
      for (let index = 0; index < count; index++) {
        const channel = await ChannelClient.open(agent);
        channel.call({ command: "sleep 1000" });
        if (index % 2 === 0) channel.cut();
        else await channel.close();
      }
      await agent.untilRunning(0);
    };
    // Warms up: what is opened or compiled once belongs to the level.
    await round(200);
    await openAndClose(20);
    await until("the zombies are reaped", () => agent.zombies() === 0);
    const [descriptors, memory] = [agent.descriptors(), agent.memoryKiB()];
    await round(calls);
    await openAndClose(calls / 10);
    await until("descriptors are back", () => agent.descriptors() <= descriptors);
    await agent.keepsLessThan(48 * 1024, memory);
    expect(agent.log).toBe("");
  });

  test.runIf(tree === kinds[0])(
    "[X58] a channel whose other end does not read is closed before it fills the agent",
    async () => {
      await using agent = await Agent.start({ tree });
      const channel = await ChannelClient.open(agent);
      await channel.request({ command: "true" });
      const memory = agent.memoryKiB();
      channel.pause();
      // 60 KB each: far more than the socket and the kernel buffer.
      const calls = 600;
      for (let sent = 0; sent < calls; sent += 8) {
        for (let more = 0; more < 8; more++) {
          channel.call({ command: "head -c 60000 /dev/zero | tr '\\0' x" });
        }
        await agent.untilRunning(0);
      }
      channel.resume();
      await channel.waitForClose();
      expect(channel.responses.length).toBeLessThan(calls);
      await agent.keepsLessThan(48 * 1024, memory);
      expect((await agent.sh("echo on")).stdout).toBe("on\n");
    },
  );
});
