import { createHash, randomBytes } from "node:crypto";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { ExecResult } from "../../../src/protocol/exec.ts";
import { limits } from "../../../src/protocol/limits.ts";
import { until } from "../../until.ts";
import { Agent, kinds } from "../agent.ts";
import { Sessions } from "./sessions.ts";

describe.each(kinds)("commands of a session in their order, process trees in a %s", (tree) => {
  const agent = Agent.forBlock({ tree });
  const sessions = new Sessions(agent);
  let id: string;
  beforeEach(async () => {
    id = await sessions.make();
  });
  afterEach(async () => {
    for (const { id: left } of await sessions.list()) await sessions.end(left);
  });

  const waiting = (count: number) =>
    until(`${count} wait`, async () => (await sessions.view(id)).waiting === count);
  /** Starts a command that runs until `release`. */
  async function hold(): Promise<{ done: Promise<ExecResult> }> {
    await agent.sh("rm -f go");
    const done = sessions.exec(id, "until [ -e go ]; do sleep 0.01; done");
    await until("it runs", async () => (await sessions.view(id)).state === "busy");
    return { done };
  }
  const release = () => agent.sh("touch go");
  const shells = () => agent.left().filter((pid) => commandOf(pid) === "bash");

  test("[L3] 32 commands run one at a time, in the order of their calls", async () => {
    const { done } = await hold();
    const results: Promise<ExecResult>[] = [];
    for (let n = 0; n < 32; n += 1) {
      results.push(
        sessions.exec(id, `n=$((n + 1)); echo "${n} $n"; [ ! -e in ] && touch in && rm in`),
      );
      await waiting(n + 1);
    }
    await release();
    await done;
    const answers = await Promise.all(results);
    expect(answers.map(({ stdout, exitCode }) => [stdout, exitCode])).toEqual(
      answers.map((_, n) => [`${n} ${n + 1}\n`, 0]),
    );
  });

  test("[L3] no more than a bounded number waits; one more is refused, and another session is not affected", async () => {
    const { done } = await hold();
    const results: Promise<ExecResult>[] = [];
    for (let n = 0; n < limits.sessionWaitersMax; n += 1) results.push(sessions.exec(id, "true"));
    await waiting(limits.sessionWaitersMax);
    expect(await sessions.refused(sessions.run(id, "true"))).toMatchObject({
      ...{ status: 429, code: "too_many", limit: limits.sessionWaitersMax },
    });
    const other = await sessions.make();
    expect((await sessions.exec(other, "echo free")).stdout).toBe("free\n");
    await release();
    await done;
    expect((await Promise.all(results)).every(({ exitCode }) => exitCode === 0)).toBe(true);
  });

  test("[L14] a caller that disconnects while it waits leaves the queue, and its command does not run", async () => {
    const { done } = await hold();
    const leaving = new AbortController();
    const left = sessions.run(id, "touch ran", { signal: leaving.signal });
    left.catch(() => {});
    await waiting(1);
    const stays = sessions.exec(id, "echo stays");
    await waiting(2);
    leaving.abort();
    await waiting(1);
    await release();
    await done;
    expect((await stays).stdout).toBe("stays\n");
    expect((await sessions.exec(id, "[ -e ran ]")).exitCode).toBe(1);
  });

  test("[L14] a caller that disconnects while its command runs ends it, and the session with it", async () => {
    const leaving = new AbortController();
    const left = sessions.run(id, "touch begun; sleep 1000", { signal: leaving.signal });
    left.catch(() => {});
    await until("it runs", async () => (await agent.sh("rm begun")).exitCode === 0);
    leaving.abort();
    await until("it has ended", async () => (await sessions.list()).length === 0);
    expect(await sessions.refused(sessions.run(id, "true"))).toMatchObject({ reason: "ended" });
    expect(agent.left()).toEqual([]);
  });

  test("[B8] a command with a key continues without its caller, runs once, and its result is stored", async () => {
    const leaving = new AbortController();
    const call = {
      command: "echo once | tee -a runs; until [ -e go ]; do sleep 0.01; done",
      keep: true,
    };
    await agent.sh("rm -f go runs");
    const left = sessions.run(id, { ...call, execId: `k-${id}` }, { signal: leaving.signal });
    left.catch(() => {});
    await until("it runs", async () => (await agent.sh("cat runs")).stdout === "once\n");
    leaving.abort();
    const joined = sessions.exec(id, { ...call, execId: `k-${id}` });
    await release();
    expect(await joined).toMatchObject({ execId: `k-${id}`, stdout: "once\n", exitCode: 0 });
    await sessions.end(id);
    expect(await sessions.exec(id, { ...call, execId: `k-${id}` })).toEqual(await joined);
    expect((await agent.sh("cat runs")).stdout).toBe("once\n");
  });

  test("[L9] 200 concurrent calls for one session get one shell", async () => {
    await sessions.end(id);
    const calls = Array.from({ length: 200 }, () => sessions.request("", "POST", { id: "shared" }));
    const answers = await Promise.all(calls);
    const made = answers.filter(({ status }) => status === 201);
    expect(made).toHaveLength(1);
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(199);
    const bodies = (await Promise.all(answers.map((answer) => answer.json()))) as { pid: number }[];
    expect(new Set(bodies.map(({ pid }) => pid)).size).toBe(1);
    expect(shells()).toEqual([bodies[0]?.pid]);
  });

  test("[L9] creating, ending and using one id at random leaves one shell or none", async () => {
    await sessions.end(id);
    let made = 0;
    for (let round = 0; round < 10; round += 1) {
      const answers = await Promise.all(
        Array.from({ length: 12 }, (_, n) => {
          if (n % 4 === 3) return sessions.request("/wild", "DELETE");
          return n % 4 === 2
            ? sessions.run("wild", "echo hi")
            : sessions.request("", "POST", { id: "wild" });
        }),
      );
      made += answers.filter(({ status }) => status === 201).length;
      expect(answers.every(({ status }) => [200, 201, 404, 410].includes(status))).toBe(true);
      expect(shells().length).toBe((await sessions.list()).length);
    }
    expect(made).toBeGreaterThan(0);
    expect((await sessions.list()).length).toBeLessThan(2);
  });

  test("[B9] 16 MB on both streams, written in turns, arrive unchanged", async () => {
    const bytes = randomBytes(4_000_000);
    writeFileSync(join(agent.workspace, "bytes"), bytes);
    const command = "for i in 1 2; do cat bytes; cat bytes >&2; done";
    const call = {
      command,
      encoding: "base64" as const,
      maxOutputBytes: limits.execOutputMaxBytes,
    };
    const result = await sessions.exec(id, call);
    const digest = (base64: string) =>
      createHash("sha256").update(Buffer.from(base64, "base64")).digest("hex");
    const twice = createHash("sha256").update(bytes).update(bytes).digest("hex");
    expect([digest(result.stdout), digest(result.stderr)]).toEqual([twice, twice]);
    expect(result.truncated).toBe(false);
    const cut = await sessions.exec(id, { ...call, maxOutputBytes: 1000 });
    expect(Buffer.from(cut.stdout + cut.stderr, "base64").length).toBe(1000);
    expect(cut.truncated).toBe(true);
  });

  test("[B9] NULs, lines without an end and bytes that are not UTF-8 survive; input is what the call gives, or empty", async () => {
    const odd = String.raw`printf 'a\0b\xff\xfe'; printf 'no end' >&2; : `;
    const result = await sessions.exec(id, { command: odd, encoding: "base64" });
    expect(Buffer.from(result.stdout, "base64").toString("latin1")).toBe("a\0b\xff\xfe");
    expect(Buffer.from(result.stderr, "base64").toString()).toBe("no end");
    const stdin = randomBytes(500_000).toString("base64");
    const echoed = await sessions.exec(id, { command: "cat", stdin, encoding: "base64" });
    expect(echoed.stdout).toBe(stdin);
    expect((await sessions.exec(id, "cat; read x; echo $?")).stdout).toBe("1\n");
    expect(
      (await sessions.exec(id, { command: "read a; echo $a", stdin: "one\ntwo" })).stdout,
    ).toBe("one\n");
    const { stdout } = await sessions.exec(id, "echo here > /dev/stdout; echo there > /dev/stderr");
    expect(stdout).toBe("here\n");
  });

  test("[B10] 1,000 commands leave no descriptors, processes or names behind", async () => {
    await sessions.exec(id, "true");
    const before = { descriptors: agent.descriptors(), left: agent.left().length };
    let answered = 0;
    for (let n = 0; n < 1000; n += 1) {
      const { stdout } = await sessions.exec(id, { command: `cat; echo ${n}`, stdin: "in " });
      if (stdout === `in ${n}\n`) answered += 1;
    }
    expect(answered).toBe(1000);
    await until("descriptors are closed", () => agent.descriptors() <= before.descriptors + 2);
    await until("no process is left", () => agent.left().length === before.left);
    expect(readdirSync(join(agent.run, "berth", "sessions"))).toEqual([]);
    expect(agent.zombies()).toBe(0);
  });
});

function commandOf(pid: number): string {
  return readFileSync(`/proc/${pid}/comm`, "utf8").trim();
}
