import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { describe, expect, test } from "vitest";
import { errorBodySchema } from "../../../src/protocol/errors.ts";
import { execResultSchema } from "../../../src/protocol/exec.ts";
import { until } from "../../until.ts";
import { Agent, fenced, kinds } from "../agent.ts";
import { completeCall } from "../checked-call.ts";
import { canFreeze, freeze } from "../freeze.ts";
import { childrenOf, statFields } from "../proc.ts";

const lost = { code: "operation_interrupted", admitted: true, reason: "lease_lost" };

describe.each(kinds)("the fence of an agent, process trees in a %s", (tree) => {
  const agent = Agent.forBlock({ tree });
  /** Each test continues at the fence of the test before. */
  let fence = 0;

  const raise = (to: number, drain: boolean, waitMs: number) => agent.raiseFence(to, drain, waitMs);
  const runAt = (level: number, command: string) =>
    agent.post({ command, timeoutMs: 600_000 }, fenced(level));
  const file = (name: string) => `${agent.workspace}/${name}`;
  const exists = (name: string) => () => existsSync(file(name));
  const errorOf = async (response: Response) =>
    errorBodySchema.parse(JSON.parse(await response.text())).error;

  test("[X40] nothing below a raised fence starts, and the fence never falls", async () => {
    fence += 10;
    expect(await raise(fence, false, 0)).toEqual({ fence, left: 0 });
    expect(await raise(fence - 5, false, 0)).toEqual({ fence, left: 0 });
    expect((await agent.health()).fence).toBe(fence);
    const stale = await runAt(fence - 1, "touch below");
    expect(stale.status).toBe(409);
    expect(await errorOf(stale)).toMatchObject({ code: "stale_fence", fence });
    expect((await runAt(fence, "touch same")).status).toBe(200);
    expect(exists("same")()).toBe(true);
    expect(exists("below")()).toBe(false);
  });

  test("[X40] a call that was accepted before a raise, but whose body arrives after it, runs nothing", async () => {
    fence += 1;
    const { socket, answer, rest } = await halfSent(agent, fence, "touch overtaken");
    // The agent has read its headers, because they raised the fence.
    await until("the headers have passed", async () => (await agent.health()).fence === fence);
    fence += 1;
    expect(await raise(fence, false, 0)).toEqual({ fence, left: 0 });
    socket.write(rest);
    expect(await answer).toMatch(/^HTTP\/1.1 409 .*"stale_fence"/s);
    const same = await halfSent(agent, fence, "touch intime");
    same.socket.write(same.rest);
    expect(await same.answer).toMatch(/^HTTP\/1.1 200 /);
    expect(exists("intime")()).toBe(true);
    expect(exists("overtaken")()).toBe(false);
  });

  test("[X41] without a drain, work below the fence continues, and the response waits for its end", async () => {
    const [low, high] = [fence, fence + 1];
    fence = high;
    const running = runAt(low, "touch on; until [ -e go ]; do sleep 0.02; done; echo whole");
    await until("it runs", exists("on"));
    expect(await raise(high, false, 0)).toEqual({ fence: high, left: 1 });
    expect(await raise(low, false, 20_000)).toEqual({ fence: high, left: 0 });
    expect(await raise(high, false, 100)).toEqual({ fence: high, left: 1 });
    const waiting = raise(high, false, 20_000);
    writeFileSync(file("go"), "");
    expect(await waiting).toEqual({ fence: high, left: 0 });
    expect(await (await running).json()).toMatchObject({ stdout: "whole\n", exitCode: 0 });
  });

  test("[X42] a drain ends all of 16 commands, even those that ignore TERM or have left their session", async () => {
    const low = fence;
    fence += 1;
    const stays = (mark: string) => `trap "" TERM; touch ${mark}; while :; do sleep 1000; done`;
    const kindsOfCommands = [
      (n: number) => `touch up.${n}; sleep 1000`,
      (n: number) => stays(`up.${n}`),
      (n: number) => `setsid sh -c '${stays(`away.${n}`)}' & touch up.${n}; sleep 1000`,
      (n: number) =>
        `(setsid sh -c '${stays(`away.${n}`)}' > /dev/null 2>&1 &); ${stays(`up.${n}`)}`,
    ];
    const commands = Array.from({ length: 16 }, (_, n) =>
      runAt(low, kindsOfCommands[n % kindsOfCommands.length]?.(n) ?? ""),
    );
    const marks = (name: string) =>
      readdirSync(agent.workspace).filter((entry) => entry.startsWith(`${name}.`)).length;
    await until("all of them run", () => marks("up") === 16 && marks("away") === 8);
    const before = agent.left();
    expect(before.length).toBeGreaterThanOrEqual(16 + 8);
    // Eight sessions of their own, and the session of all others. A `touch` may have ended by now.
    const sessions = before.map((pid) => statFields(pid)[3]);
    expect(new Set(sessions.filter(Boolean)).size).toBeGreaterThanOrEqual(9);
    expect(await raise(fence, true, 20_000)).toEqual({ fence, left: 0 });
    // Checked first, so that nothing has time to end in between.
    const remaining = before.filter((pid) => existsSync(`/proc/${pid}`));
    expect(remaining).toEqual([]);
    expect(agent.left()).toEqual([]);
    expect(childrenOf(agent.pid)).toEqual([]);
    expect(await agent.health()).toMatchObject({ running: 0, fence });
    for (const response of await Promise.all(commands)) {
      // 502, or 200 if the heartbeat had started.
      expect([502, 200]).toContain(response.status);
      expect(await errorOf(response)).toMatchObject(lost);
    }
  });

  test("[X42] a command that is ended before the heartbeat gets 502, later an error inside the 200", async () => {
    const low = fence;
    fence += 1;
    const late = await runAt(low, "sleep 1000");
    expect(late.status).toBe(200);
    const soon = runAt(low, "touch soon; sleep 1000");
    await until("the second runs", exists("soon"));
    expect(await raise(fence, true, 20_000)).toEqual({ fence, left: 0 });
    expect(await errorOf(late)).toMatchObject(lost);
    const answer = await soon;
    expect(answer.status).toBe(502);
    expect(await errorOf(answer)).toMatchObject({ ...lost, retryable: false });
  });

  test("[X42] a drain gives time to clean up after TERM, and a command that ended by itself keeps its result", async () => {
    const low = fence;
    fence += 1;
    const tidy = runAt(
      low,
      "trap 'sleep 0.3; touch tidied; exit 0' TERM; touch tidy; while :; do sleep 0.02; done",
    );
    await until("it runs", exists("tidy"));
    const done = runAt(low, "echo done");
    expect(execResultSchema.parse(await (await done).json()).stdout).toBe("done\n");
    expect(await raise(fence, true, 20_000)).toEqual({ fence, left: 0 });
    expect(exists("tidied")()).toBe(true);
    expect(await errorOf(await tidy)).toMatchObject(lost);
  });

  test("[X43] a drain does not touch work at the fence or above it", async () => {
    const low = fence;
    fence += 2;
    const below = runAt(low, "touch b0; sleep 1000");
    await until("the low one runs", exists("b0"));
    const same = runAt(fence, "touch s0; until [ -e go3 ]; do sleep 0.02; done; echo same");
    const above = runAt(fence + 1, "touch a0; until [ -e go3 ]; do sleep 0.02; done; echo above");
    await until("both run", () => exists("s0")() && exists("a0")());
    expect(await raise(fence, true, 20_000)).toEqual({ fence: fence + 1, left: 0 });
    expect(await errorOf(await below)).toMatchObject(lost);
    expect((await agent.health()).running).toBe(2);
    writeFileSync(file("go3"), "");
    expect(await (await same).json()).toMatchObject({ stdout: "same\n", exitCode: 0 });
    expect(await (await above).json()).toMatchObject({ stdout: "above\n", exitCode: 0 });
    fence += 1;
  });

  test("[X43] concurrent fence calls get their responses, each for its own fence", async () => {
    const low = fence;
    const calls = 8;
    const running: Promise<Response>[] = [];
    for (let n = 0; n < calls; n += 1) {
      running.push(runAt(low + n, `touch m${n}; sleep 1000`));
      await until("it runs", exists(`m${n}`));
    }
    fence = low + calls;
    const partly = await raise(low + calls / 2, true, 20_000);
    expect(partly).toEqual({ fence: fence - 1, left: 0 });
    expect((await agent.health()).running).toBe(calls / 2);
    const answers = await Promise.all(
      Array.from({ length: calls }, (_, n) => raise(low + n + 1, n % 2 === 1, 20_000)),
    );
    expect(answers.map(({ left }) => left)).toEqual(answers.map(() => 0));
    expect(Math.max(...answers.map((answer) => answer.fence))).toBe(fence);
    for (const response of running) expect(await errorOf(await response)).toMatchObject(lost);
    expect(agent.left()).toEqual([]);
  });

  test("[X43] a drain whose wait is over reports how many are left, and continues", async () => {
    const low = fence;
    fence += 1;
    const running = runAt(low, `trap "" TERM; touch slow; while :; do sleep 1000; done`);
    await until("it runs", exists("slow"));
    expect(await raise(fence, true, 0)).toEqual({ fence, left: 1 });
    expect(await raise(fence, false, 20_000)).toEqual({ fence, left: 0 });
    expect(agent.left()).toEqual([]);
    expect(await errorOf(await running)).toMatchObject(lost);
  });

  test.each([
    ["before the heartbeat", 0],
    ["during the heartbeat", 1],
  ])(
    "[X42] a caller that disconnects in the middle of a drain, %s, changes nothing",
    async (when, beats) => {
      const low = fence;
      fence += 1;
      const mark = `going.${beats}`;
      const caller = new AbortController();
      const command = `trap "" TERM; touch ${mark}; while :; do sleep 1000; done`;
      const init = { ...fenced(low), signal: caller.signal };
      const post = agent.post({ command, timeoutMs: 600_000 }, init);
      post.catch(() => {});
      await until("it runs", exists(mark));
      if (beats > 0) expect((await post).status, when).toBe(200);
      expect(await raise(fence, true, 0)).toEqual({ fence, left: 1 });
      caller.abort();
      expect(await raise(fence, false, 20_000)).toEqual({ fence, left: 0 });
      expect(agent.left()).toEqual([]);
      expect(agent.log).toBe("");
      expect((await agent.health()).running).toBe(0);
    },
  );

  test.runIf(canFreeze)(
    "[X42] a killed process that the kernel does not end is counted until it has ended",
    async () => {
      const low = fence;
      fence += 1;
      const stuck = runAt(low, "sleep 1000 & echo $! > new; mv new stuck; wait");
      await until("it runs", exists("stuck"));
      const hold = freeze(readFileSync(file("stuck"), "utf8").trim());
      try {
        expect(await raise(fence, true, 3000)).toEqual({ fence, left: 1 });
        // The caller gets an error after the agent's own limit, and the process still counts.
        expect(await errorOf(await stuck)).toMatchObject({ code: "internal" });
        expect(await raise(fence, true, 100)).toEqual({ fence, left: 1 });
        expect(await agent.health()).toMatchObject({ running: 1 });
        expect(agent.left().length).toBeGreaterThan(0);
      } finally {
        hold.thaw();
      }
      expect(await raise(fence, true, 20_000)).toEqual({ fence, left: 0 });
      expect(agent.left()).toEqual([]);
      await until("its group is free again", hold.isRemoved);
    },
  );

  test("[X44] a fence call needs the secret, but no fence", async () => {
    const before = (await agent.health()).fence;
    const anybody = await fetch(`${agent.url}/v1/fence`, {
      method: "POST",
      body: JSON.stringify({ fence: before + 5, drain: true, waitMs: 0 }),
    });
    expect(anybody.status).toBe(401);
    const method = await agent.request("/v1/fence");
    expect([method.status, method.headers.get("allow")]).toEqual([405, "POST"]);
    expect((await agent.health()).fence).toBe(before);
    expect(await raise(0, false, 0)).toEqual({ fence: before, left: 0 });
  });
});

/** Sends an exec call up to the middle of its body, and returns the rest. */
async function halfSent(
  agent: Agent,
  fence: number,
  command: string,
): Promise<{ socket: Socket; answer: Promise<string>; rest: string }> {
  const call = { execId: "exec1", requestId: "request1", command };
  const body = completeCall("/v1/exec", JSON.stringify(call));
  const socket = connect(agent.port, "127.0.0.1");
  await new Promise((resolve) => socket.once("connect", resolve));
  const answer = new Promise<string>((resolve, reject) => {
    let text = "";
    socket.on("data", (bytes) => {
      text += bytes;
    });
    socket.once("end", () => resolve(text));
    socket.once("error", reject);
  });
  const head = [
    "POST /v1/exec HTTP/1.1",
    ...["host: agent", "connection: close", `authorization: Bearer ${agent.secret}`],
    ...[`berth-fence: ${fence}`, `content-length: ${Buffer.byteLength(body)}`],
  ];
  socket.write(`${head.join("\r\n")}\r\n\r\n${body.slice(0, 10)}`);
  return { socket, answer, rest: body.slice(10) };
}
