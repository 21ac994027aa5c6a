import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { AgentWork } from "../../../src/protocol/internal/agent.ts";
import { until } from "../../until.ts";
import { Agent, kinds } from "../agent.ts";
import { Sessions } from "./sessions.ts";

describe.each(kinds)("how a session ends, process trees in a %s", (tree) => {
  const agent = Agent.forBlock({ tree });
  const sessions = new Sessions(agent);
  let id: string;
  beforeEach(async () => {
    id = await sessions.make();
  });
  afterEach(async () => {
    for (const { id: left } of await sessions.list()) await sessions.end(left);
  });

  const refused = (command: string, timeoutMs?: number) =>
    sessions.refused(sessions.run(id, { command, ...(timeoutMs && { timeoutMs }) }));
  const exitEvents = async () => {
    const work = (await (await agent.request("/v1/work")).json()) as AgentWork;
    return work.endings.filter((event) => event.id === id);
  };
  /** Starts processes that leave their session and ignore TERM. */
  const stubborn = `touch born; for i in 1 2 3; do
      setsid sh -c 'trap "" TERM; echo $$ >> born; while :; do sleep 1000; done' > /dev/null 2>&1 &
    done; until [ "$(wc -l < born 2>/dev/null)" = 3 ]; do sleep 0.02; done;`;

  const ends: [string, string, object][] = [
    ["exit", "echo last; exit 7", { exitCode: 7, signal: null, stdout: "last\n" }],
    [
      "another program in its place",
      "exec sh -c 'echo other; exit 3'",
      { exitCode: 3, stdout: "other\n" },
    ],
    ["a shell that kills itself", "echo last; kill -9 $$", { exitCode: null, signal: "SIGKILL" }],
    ["an unset variable with set -u", "set -u; echo $nothing", { exitCode: 1 }],
    ["an error with set -e", "set -e; echo one; false; echo two", { exitCode: 1, stdout: "one\n" }],
    ["a trap at its exit", "trap 'echo bye' EXIT; exit 4", { exitCode: 4, stdout: "bye\n" }],
  ];
  test.each(ends)(
    "[L8] %s ends it, with one exit event; a new session of the same id has none of the old state",
    async (_, command, facts) => {
      await sessions.exec(id, "cd /; state=old; sleep 1000 > /dev/null 2>&1 &");
      const { pid } = await sessions.view(id);
      const terminated = {
        status: 410,
        code: "session_terminated",
        timedOut: false,
        reason: "exited",
      };
      const first = await refused(command);
      expect(first).toMatchObject({ ...terminated, ...facts, truncated: false });
      expect(agent.left()).toEqual([]);
      const later = await refused("echo never");
      expect(later).toMatchObject({
        ...terminated,
        exitCode: first.exitCode,
        signal: first.signal,
      });
      expect(later).not.toHaveProperty("stdout");
      expect(await sessions.refused(sessions.request(`/${id}`, "GET"))).toMatchObject(terminated);
      expect(await exitEvents()).toMatchObject([
        { kind: "session", reason: "exited", exitCode: first.exitCode },
      ]);
      await sessions.make({ id });
      expect((await sessions.exec(id, 'echo "<$state>"; pwd')).stdout).toBe(
        `<>\n${agent.workspace}\n`,
      );
      expect((await sessions.view(id)).pid).not.toBe(pid);
      await sessions.end(id);
    },
  );

  test("[L8] a shell that is killed from outside ends its session, idle or busy", async () => {
    await agent.sh(`kill -9 ${(await sessions.view(id)).pid}`);
    await until("it has ended", async () => (await sessions.list()).length === 0);
    expect(await refused("true")).toMatchObject({ signal: "SIGKILL", reason: "exited" });
    await sessions.make({ id });
    const running = refused("echo begun; sleep 1000");
    await until("it runs", async () => (await sessions.view(id)).state === "busy");
    await agent.sh(`kill -9 ${(await sessions.view(id)).pid}`);
    expect(await running).toMatchObject({ signal: "SIGKILL", reason: "exited", exitCode: null });
    expect(agent.left()).toEqual([]);
  });

  test("[B4] a time limit ends the command and its session with the whole tree, and the error has the output", async () => {
    const result = await refused(
      `rm -f born; ${stubborn} printf partial; echo warn >&2; sleep 1000`,
      6000,
    );
    expect(result).toMatchObject({
      ...{ status: 200, code: "session_terminated", timedOut: true, reason: "timed_out" },
      ...{ stdout: "partial", stderr: "warn\n", signal: "SIGTERM" },
    });
    expect((await agent.sh("wc -l < born")).stdout).toBe("3\n");
    expect(agent.left()).toEqual([]);
    expect(await refused("true")).toMatchObject({
      status: 410,
      reason: "timed_out",
      timedOut: true,
    });
  });

  test("[B4] a command without a time limit has that of its session", async () => {
    id = await sessions.make({ commandTimeoutMs: 2000 });
    expect(await refused("trap '' TERM; sleep 1000 & wait; sleep 1000")).toMatchObject({
      ...{ timedOut: true, signal: "SIGKILL" },
    });
  });

  test("[B5] DELETE ends a session with all that it started, responds when nothing is left, and can be repeated", async () => {
    await sessions.exec(id, `rm -f born; ${stubborn}`);
    const running = refused("echo begun; sleep 1000");
    await until("it runs", async () => (await sessions.view(id)).state === "busy");
    const waiting = refused("echo never > never");
    await until("one waits", async () => (await sessions.view(id)).waiting === 1);
    await sessions.end(id);
    expect((await agent.sh("cat born | wc -l")).stdout).toBe("3\n");
    expect(agent.left()).toEqual([]);
    expect(await running).toMatchObject({ reason: "ended", stdout: "begun\n" });
    expect(await waiting).toMatchObject({ status: expect.any(Number), reason: "ended" });
    expect((await agent.sh("ls never")).exitCode).not.toBe(0);
    await sessions.end(id);
    expect(await exitEvents()).toMatchObject([{ reason: "ended" }]);
    const unknown = sessions.request("/nobody", "DELETE");
    expect(await sessions.refused(unknown)).toMatchObject({ status: 404, code: "not_found" });
  });

  test("[B6] a background child delays no response, continues in the session, and its later output is dropped", async () => {
    const started = performance.now();
    const first = await sessions.exec(
      id,
      "(until [ -e go ]; do sleep 0.02; done; head -c 5000000 /dev/zero; touch wrote; sleep 1000) & echo $!",
    );
    expect(performance.now() - started).toBeLessThan(10_000);
    expect(first.leftovers).toBe(0);
    const child = first.stdout.trim();
    await sessions.exec(id, "touch go");
    await until("it has written", async () => (await agent.sh("ls wrote")).exitCode === 0);
    const next = await sessions.exec(id, `kill -0 ${child} && echo alive; rm -f go wrote`);
    expect(next).toMatchObject({ stdout: "alive\n", stderr: "" });
    await sessions.end(id);
    expect(agent.left()).toEqual([]);
  });

  test("[B6] many children of earlier commands keep a bounded number of descriptors", async () => {
    const before = agent.descriptors();
    for (let n = 0; n < 70; n += 1) await sessions.exec(id, "sleep 1000 &");
    const held = () => agent.descriptors() - before;
    expect(held()).toBeGreaterThan(100);
    // The runtime has two descriptors for each pipe that it reads; those of the last calls close a moment later.
    await until("their number is bounded", () => held() < 4 * 64 + 10);
    expect(agent.left().length).toBeGreaterThanOrEqual(71);
    await sessions.end(id);
    await until("all are closed", () => agent.descriptors() < before);
  });
});
