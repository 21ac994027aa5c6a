import { mkdirSync, rmdirSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { until } from "../../until.ts";
import { Agent, kinds } from "../agent.ts";

async function inParallel(
  streams: number,
  each: number,
  run: (n: number) => Promise<void>,
): Promise<void> {
  await Promise.all(
    Array.from({ length: streams }, async (_, stream) => {
      for (let i = 0; i < each; i += 1) await run(stream * each + i);
    }),
  );
}

describe.each(kinds)("an agent under load, process trees in a %s", (tree) => {
  // A subreaper is a process of its own, so fewer commands must suffice.
  const [streams, each] = tree === "cgroup" ? [16, 63] : [16, 10];

  test("[X23] execs in 16 parallel streams each get their own output, exit code and input", async () => {
    await using agent = await Agent.start({ tree });
    let right = 0;
    await inParallel(streams, each, async (n) => {
      const result = await agent.sh(`read x; echo $x; echo e$N >&2; exit ${n % 256}`, {
        stdin: `in ${n}\n`,
        env: { N: String(n) },
      });
      const [stdout, stderr] = [`in ${n}\n`, `e${n}\n`];
      expect(result).toMatchObject({ stdout, stderr, exitCode: n % 256, leftovers: 0 });
      right += 1;
    });
    expect(right).toBe(streams * each);
  });

  test("[X24] descriptors and memory return to their level after many execs of every kind", async () => {
    await using agent = await Agent.start({ tree });
    const rounds = tree === "cgroup" ? 125 : 8;
    const kindsOfCalls = [
      () => agent.sh("true"),
      () => agent.sh("cat", { stdin: "x".repeat(1000) }),
      () => agent.sh("head -c 300000 /dev/zero; sleep 100 & exit 1"),
      () => agent.sh("sleep 100", { timeoutMs: 1 }),
      () => agent.exec({ argv: ["no-such-program"] }),
      () => agent.refused({ command: "true", cwd: "/nope" }),
    ];
    const run = async (n: number) => {
      await kindsOfCalls[n % kindsOfCalls.length]?.();
    };
    // Warms up: what is opened or compiled once belongs to the level.
    await inParallel(16, 4, run);
    await until("the zombies are reaped", () => agent.zombies() === 0);
    const [descriptors, memory] = [agent.descriptors(), agent.memoryKiB()];
    await inParallel(16, rounds, run);
    await until("descriptors are back", () => agent.descriptors() <= descriptors);
    expect(agent.zombies()).toBe(0);
    await agent.keepsLessThan(48 * 1024, memory);
  });

  test("[X25] an agent that gets TERM ends everything, even what ignores TERM", async () => {
    await using agent = await Agent.start({ tree });
    const running = agent.post({
      command: `setsid sh -c 'trap "" TERM; echo up > up; while :; do sleep 1000; done' & trap '' TERM; sleep 1000; sleep 1000`,
    });
    running.then((response) => response.text()).catch(() => {});
    await until("it runs", async () => (await agent.sh("cat up")).stdout === "up\n");
    expect(agent.left().length).toBeGreaterThanOrEqual(3);
  });

  test.runIf(tree === "cgroup")(
    "[X25] an agent that gets TERM waits for a cgroup that is busy for a moment",
    async () => {
      await using agent = await Agent.start({ tree });
      await agent.sh("true");
      const busy = agent.groups().map((group) => join(group, "c0", "busy"));
      for (const group of busy) mkdirSync(group);
      expect(busy).toHaveLength(1);
      setTimeout(() => busy.map((group) => rmdirSync(group)), 200);
    },
  );
});
