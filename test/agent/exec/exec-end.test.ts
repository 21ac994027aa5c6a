import { describe, expect, test } from "vitest";
import { until } from "../../until.ts";
import { Agent, isRoot, kinds } from "../agent.ts";
import { childrenOf } from "../proc.ts";

describe.each(kinds)("how an exec ends, process trees in a %s", (tree) => {
  const agent = Agent.forBlock({ tree });

  /** Starts children that leave their session, ignore TERM and write their process ids to `born`. */
  const stubborn = (count: number) =>
    `rm -f born; for i in $(seq ${count}); do
       setsid sh -c 'trap "" TERM; echo $$ >> born; while :; do sleep 1000; done' > /dev/null 2>&1 &
     done; until [ "$(wc -l < born 2>/dev/null)" = ${count} ]; do sleep 0.02; done;`;

  const born = async () => (await agent.sh("cat born")).stdout.trim().split("\n").map(Number);
  const isRunning = (pid: number) => agent.left().includes(pid);

  test("[L5] a time limit ends the command with TERM, keeps its output and reports the timeout", async () => {
    const result = await agent.sh("printf partial; echo warn >&2; sleep 1000", { timeoutMs: 3000 });
    expect(result).toMatchObject({
      ...{ timedOut: true, stdout: "partial", stderr: "warn\n", exitCode: null, signal: "SIGTERM" },
      leftovers: 0,
    });
    expect(agent.left()).toEqual([]);
  });

  test("[L5] a command that cleans up on TERM gets time for it", async () => {
    const command = "trap 'sleep 0.3; echo cleaned; exit 7' TERM; while :; do sleep 0.05; done";
    const result = await agent.sh(command, { timeoutMs: 3000 });
    expect(result).toMatchObject({ timedOut: true, stdout: "cleaned\n", exitCode: 7 });
  });

  test("[L5] children that leave their session and ignore TERM are ended after a time limit", async () => {
    const result = await agent.sh(`${stubborn(5)} echo ready; wait`, { timeoutMs: 8000 });
    expect(result).toMatchObject({ timedOut: true, stdout: "ready\n" });
    // Each of the five and the sleep below it.
    expect(result.leftovers).toBe(10);
    expect(agent.left()).toEqual([]);
    expect((await born()).length).toBe(5);
  });

  test("[X11] leftovers of a command are ended and counted, and delay the response no longer than the drain", async () => {
    const result = await agent.sh("sleep 100 & echo hi");
    expect(result).toMatchObject({ stdout: "hi\n", exitCode: 0, leftovers: 1 });
    // The child alone would have taken 100 s.
    expect(result.durationMs).toBeLessThan(5000);
    expect(agent.left()).toEqual([]);
  });

  test("[X11] orphaned leftovers are counted too", async () => {
    const result = await agent.sh(`${stubborn(3)} echo ready`);
    expect(result).toMatchObject({ stdout: "ready\n", exitCode: 0, leftovers: 6 });
    expect((await born()).some(isRunning)).toBe(false);
  });

  test("[X11] what is still written within the drain arrives", async () => {
    const afterTheLeader = "(while kill -0 $$ 2>/dev/null; do :; done; echo late) & echo early";
    expect(await agent.sh(afterTheLeader)).toMatchObject({ stdout: "early\nlate\n", leftovers: 0 });
  });

  test("[X11] a pipe that a process of another command holds open does not delay the response", async () => {
    const wait = (file: string) => `until [ -e ${file} ]; do sleep 0.02; done`;
    const holder = agent.sh(
      `mkfifo gate; ${wait("pid")}; exec 9> /proc/$(cat pid)/fd/1; touch held; read line < gate; echo free`,
    );
    const held = await agent.sh(`echo $$ > new; mv new pid; ${wait("held")}; echo done`);
    expect(held).toMatchObject({ stdout: "done\n", exitCode: 0, leftovers: 0 });
    await agent.sh("echo go > gate");
    expect(await holder).toMatchObject({ stdout: "free\n", exitCode: 0 });
  });

  test("[L5] a tree that forks as fast as it can is ended after a time limit", async () => {
    const result = await agent.sh(
      "f() { while :; do (sleep 0.01; :) & (setsid sh -c 'trap \"\" TERM; sleep 1000' &) ; sleep 0.01; done; }; trap '' TERM; f & f & f & wait",
      { timeoutMs: 1500 },
    );
    expect(result.timedOut).toBe(true);
    expect(result.leftovers).toBeGreaterThan(5);
    expect(agent.left()).toEqual([]);
  });

  test("[X12] 200 orphans leave no zombie", async () => {
    const result = await agent.sh(
      `mkdir ends; for i in $(seq 200); do (sh -c "touch ends/$i" > /dev/null 2>&1 &); done
       until [ "$(ls ends | wc -l)" = 200 ]; do sleep 0.02; done; echo all`,
    );
    expect(result).toMatchObject({ stdout: "all\n", exitCode: 0 });
    await until("the zombies are reaped", () => agent.zombies() === 0);
    expect(childrenOf(agent.pid)).toEqual([]);
  });

  test("[X12] leftovers that were killed leave no zombie either", async () => {
    const result = await agent.sh("for i in $(seq 50); do (sleep 100 > /dev/null 2>&1 &); done");
    expect(result.leftovers).toBe(50);
    await until("the zombies are reaped", () => agent.zombies() === 0);
    expect(childrenOf(agent.pid)).toEqual([]);
  });

  test.runIf(tree === "subreaper")(
    "[X13] a tree ends with its subreaper when that is killed",
    async () => {
      const running = agent.sh(`${stubborn(3)} echo up; sleep 1000`);
      const isBorn = async () => (await agent.sh("test -e born && wc -l < born")).stdout === "3\n";
      await until("the tree runs", isBorn);
      const pids = await born();
      expect(pids.every(isRunning)).toBe(true);
      const subreaper = childrenOf(agent.pid)[0];
      expect(subreaper).toBeDefined();
      process.kill(subreaper ?? 0, "SIGKILL");
      expect(await running).toMatchObject({ exitCode: null, signal: "SIGKILL" });
      expect(agent.left()).toEqual([]);
      await until("the zombies are reaped", () => childrenOf(agent.pid).length === 0);
    },
  );

  test.runIf(tree === "subreaper")(
    "[X13] a command that kills its subreaper kills itself, which its result reports; nothing is left",
    async () => {
      // This is possible where the agent and its commands share a user.
      await using shared = await Agent.start({ tree, ...(isRoot ? { ownUid: 12_345 } : {}) });
      const command = "(setsid sleep 1000 > /dev/null 2>&1 &); kill -9 $PPID; sleep 1000";
      for (let i = 0; i < 20; i += 1) {
        expect(await shared.sh(command)).toMatchObject({ exitCode: null, signal: "SIGKILL" });
        const direct = await shared.exec({ argv: ["sh", "-c", "kill -9 $PPID"] });
        expect(direct).toMatchObject({ signal: "SIGKILL" });
      }
      expect(shared.left()).toEqual([]);
      expect(await shared.sh("echo still here")).toMatchObject({ stdout: "still here\n" });
    },
  );

  test.runIf(isRoot)("[X13] a command can neither stop nor kill its supervisor", async () => {
    const result = await agent.sh("kill -9 $PPID; kill -STOP $PPID; echo still here");
    expect(result.stdout).toBe("still here\n");
    expect(result.stderr.match(/not permitted/g)?.length).toBe(2);
  });
});
