/** After a pause, the agent leaves the cgroup of a command in the background of its other work. */
import { setTimeout as pause } from "node:timers/promises";
import { beforeAll, describe, expect, test } from "vitest";
import { until } from "../../until.ts";
import { Agent, kinds } from "../agent.ts";

/** Longer than a second move stays fast in the kernel. */
const pauseMs = 60;
const rounds = 12;

describe.each(kinds)("a command after a pause, process trees in a %s", (tree) => {
  const agent = Agent.forBlock({ tree });
  beforeAll(() => agent.sh("true"));

  test("[X11] its leftovers are ended and counted, and the agent survives", async () => {
    for (let round = 0; round < rounds; round++) {
      await pause(pauseMs);
      const result = await agent.sh("sleep 100 > /dev/null 2>&1 & echo hi");
      expect(result).toMatchObject({ stdout: "hi\n", exitCode: 0, leftovers: 1 });
    }
    expect(agent.left()).toEqual([]);
  });

  test("[X11] concurrent commands are not part of its tree", async () => {
    for (let round = 0; round < rounds; round++) {
      await pause(pauseMs);
      const [first, ...others] = await Promise.all([
        agent.sh("true"),
        ...Array.from({ length: 4 }, (_, n) => agent.sh(`sleep 0.1; echo ${n}`)),
      ]);
      expect(first).toMatchObject({ exitCode: 0, leftovers: 0 });
      expect(others.map(({ stdout }) => stdout)).toEqual(["0\n", "1\n", "2\n", "3\n"]);
    }
  });

  test("[X11] a command whose caller disconnects at once, and one that times out at once, end alone", async () => {
    for (let round = 0; round < rounds; round++) {
      await pause(pauseMs);
      const caller = new AbortController();
      const call = { execId: `gone-${round}`, command: "trap '' TERM; sleep 100" };
      const response = agent.post(call, { signal: caller.signal }).catch(() => "cancelled");
      setTimeout(() => caller.abort(), round);
      expect(await response).toBe("cancelled");
      await pause(pauseMs);
      const late = await agent.sh("sleep 100", { timeoutMs: 1 });
      expect(late).toMatchObject({ timedOut: true, signal: "SIGTERM" });
    }
    await until("nothing is left", () => agent.left().length === 0);
    expect((await agent.sh("echo on")).stdout).toBe("on\n");
  });
});
