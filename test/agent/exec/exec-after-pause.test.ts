/** The agent leaves the group of a command beside its own work when it did not just leave another one. */
import { setTimeout as pause } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Agent, kinds } from "../agent.ts";
import { until } from "../until.ts";

/** Longer than the kernel keeps a move short. */
const pauseMs = 60;
const rounds = 12;

describe.each(kinds)("a command after a pause, trees held by %s", (tree) => {
  let agent: Agent;
  beforeAll(async () => {
    agent = await Agent.start({ tree });
    await agent.sh("true");
  });
  afterAll(() => agent.stop());

  test("[X11] what it leaves behind is ended and counted, and the agent lives on", async () => {
    for (let round = 0; round < rounds; round++) {
      await pause(pauseMs);
      const result = await agent.sh("sleep 100 > /dev/null 2>&1 & echo hi");
      expect(result).toMatchObject({ stdout: "hi\n", exitCode: 0, leftovers: 1 });
    }
    expect(agent.left()).toEqual([]);
  });

  test("[X11] those that come with it are no part of it", async () => {
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

  test("[X11] one whose caller goes at once, and one whose time is over at once, are ended alone", async () => {
    for (let round = 0; round < rounds; round++) {
      await pause(pauseMs);
      const caller = new AbortController();
      const call = { execId: `gone-${round}`, command: "trap '' TERM; sleep 100" };
      const gone = agent.post(call, { signal: caller.signal }).catch(() => "gone");
      setTimeout(() => caller.abort(), round);
      expect(await gone).toBe("gone");
      await pause(pauseMs);
      const late = await agent.sh("sleep 100", { timeoutMs: 1 });
      expect(late).toMatchObject({ timedOut: true, signal: "SIGTERM" });
    }
    await until("nothing is left", () => agent.left().length === 0);
    expect((await agent.sh("echo on")).stdout).toBe("on\n");
  });
});
