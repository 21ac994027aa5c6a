import { existsSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { agentWorkSchema } from "../../../src/protocol/internal/agent.ts";
import { later, writeCall } from "../../../src/protocol/internal/agent-channel.ts";
import { limits } from "../../../src/protocol/limits.ts";
import { Agent, kinds } from "../agent.ts";
import { Sessions } from "../sessions/sessions.ts";
import { until } from "../until.ts";
import { Line, opened } from "./channel.ts";

describe.each(kinds)("the line of an agent, trees held by %s", (tree) => {
  let agent: Agent;
  let line: Line;
  beforeAll(async () => {
    agent = await Agent.start({ tree });
    line = await Line.open(agent);
  });
  afterAll(async () => {
    await line.close();
    await agent.stop();
  });

  const isRunning = (count: number) => async () => {
    const health = (await (await agent.request("/v1/health")).json()) as { running: number };
    return health.running === count;
  };

  test("[X52] it opens with the secret and for the life that is meant, and says so as every answer does", async () => {
    const meant = { "berth-incarnation": agent.incarnation };
    const { socket, answer } = await opened(agent, { headers: meant });
    expect(answer.statusCode).toBe(101);
    expect(answer.headers).toMatchObject({
      "berth-incarnation": agent.incarnation,
      "berth-protocol": "2",
    });
    socket?.close();
    const other = { "berth-incarnation": `${agent.startId}.aaaaaaaaaaaaaaaa` };
    expect((await opened(agent, { headers: other })).answer.statusCode).toBe(410);
    expect((await opened(agent, { secret: "wrong" })).answer.statusCode).toBe(401);
  });

  test("[X52] who asks for it by what is no WebSocket is told so", async () => {
    const plain = await agent.request("/v1/line");
    expect(plain.status).toBe(426);
    expect(await plain.json()).toMatchObject({ error: { code: "upgrade_required" } });
    expect((await agent.request("/v1/line", { method: "POST" })).status).toBe(405);
  });

  test("[X52] one that is open keeps nothing busy and is no viewer", async () => {
    const work = async () => agentWorkSchema.parse(await (await agent.request("/v1/work")).json());
    await line.ask({ command: "true" });
    const before = await work();
    expect(before).toMatchObject({ execs: 0, attached: 0 });
    expect(before.idleMs).toBeGreaterThan(0);
    await until("it is idle for longer", async () => (await work()).idleMs > before.idleMs);
  });

  /** What differs from run to run. */
  const fixed = (answer: unknown) => ({ ...(answer as object), durationMs: 0, execId: "" });

  test("[X53] a command is answered as the same POST answers it", async () => {
    const calls = [
      { command: "echo out; echo err >&2; exit 3" },
      { argv: ["cat"], stdin: "ü\0\n", encoding: "utf8" as const },
      { command: "head -c 300 /dev/urandom | head -c 0; kill -9 $$", encoding: "base64" as const },
      { command: "sleep 100", timeoutMs: 1 },
      { command: "head -c 5000 /dev/zero | tr '\\0' x", maxOutputBytes: 1000 },
      { command: "pwd; echo $A", cwd: "/", env: { A: "a" } },
    ];
    for (const call of calls) {
      const { status, answer } = await line.ask(call);
      expect(status).toBe(200);
      const posted = await agent.exec(call);
      expect(fixed(answer)).toEqual(fixed(posted));
      expect(Object.keys(answer as object)).toEqual(Object.keys(posted));
    }
  });

  test("[X53] a command of a session is answered as the same POST answers it, in the order of the calls", async () => {
    const sessions = new Sessions(agent);
    const id = await sessions.make();
    const path = `/v1/sessions/${id}/exec`;
    expect((await line.ask({ command: "cd /; A=1" }, { path })).status).toBe(200);
    const call = { command: "pwd; echo $A" };
    const { status, answer } = await line.ask(call, { path });
    expect(status).toBe(200);
    expect(answer).toMatchObject({ stdout: "/\n1\n", exitCode: 0 });
    expect(fixed(answer)).toEqual(fixed(await sessions.exec(id, call)));
    const inOrder: string[] = [];
    line.atOnce(() => {
      for (let at = 0; at < 20; at++) inOrder.push(line.call({ command: `echo ${at}` }, { path }));
    });
    for (const [at, one] of inOrder.entries()) {
      expect(JSON.parse((await line.answer(one)).json)).toMatchObject({ stdout: `${at}\n` });
    }
    expect(line.told.slice(-20).map((told) => told.id)).toEqual(inOrder);
    await sessions.end(id);
  });

  test.each([
    ["a folder that is none", { command: "true", cwd: "/nope" }, {}, 400],
    ["a field that is not known", { command: "true", more: 1 }, {}, 400],
    ["no JSON", "{", {}, 400],
    ["a session that is none", { command: "true" }, { path: "/v1/sessions/none/exec" }, 404],
    ["too much", `{"command":"${"x".repeat(limits.bodyBytesMax)}"}`, {}, 413],
  ])("[X53] a call with %s is refused as its POST is", async (_what, body, called, status) => {
    const { path = "/v1/exec" } = called as { path?: string };
    const told = await line.ask(body, { ...called, id: "refused" });
    line.told.length = 0;
    expect(told.status).toBe(status);
    const text =
      typeof body === "string"
        ? body
        : JSON.stringify({ execId: "refused", requestId: "request1", ...body });
    const headers = { "berth-request-id": "request1" };
    const posted = await agent.request(path, { method: "POST", body: text, headers });
    expect(posted.status).toBe(status);
    expect(told.answer).toEqual(await posted.json());
  });

  test("[X53] a fence that has passed is refused, and nothing is run", async () => {
    const own = await Agent.start({ tree });
    const fenced = await Line.open(own);
    expect((await fenced.ask({ command: "true" }, { fence: 7 })).status).toBe(200);
    const { status, answer } = await fenced.ask({ command: "touch late" }, { fence: 6 });
    expect(status).toBe(409);
    expect(answer).toMatchObject({ error: { code: "stale_fence", fence: 7 } });
    expect(existsSync(`${own.workspace}/late`)).toBe(false);
    expect((await fenced.ask({ command: "true" }, { fence: 7 })).status).toBe(200);
    await fenced.close();
    await own.stop();
  });

  test("[X53] many at once are answered each under its id, when it ends", async () => {
    const held = (at: number) => ({ command: `until [ -e end${at} ]; do sleep 0.1; done` });
    const first = line.call(held(1));
    const second = line.call(held(2));
    await until("both run", isRunning(2));
    const others = Array.from({ length: 30 }, (_, at) => line.call({ command: `echo ${at}` }));
    for (const [at, id] of others.entries()) {
      const { status, json } = await line.answer(id);
      expect(status).toBe(200);
      expect(JSON.parse(json)).toMatchObject({ execId: id, stdout: `${at}\n` });
    }
    await agent.sh("touch end2");
    await line.answer(second);
    // Where this machine is slow, it is told at most that it takes longer.
    expect(line.told.find(({ id }) => id === first)?.status ?? later).toBe(later);
    await agent.sh("touch end1");
    await line.answer(first);
    expect(line.told.filter(({ id }) => id === first || id === second)).toHaveLength(2);
    await until("nothing runs", isRunning(0));
  });

  // A tender costs a process of its own: one kind proves it.
  test.runIf(tree === "cgroup")("[X53] one command too many is refused", async () => {
    const own = await Line.open(agent);
    const { execConcurrentMax } = limits;
    for (let at = 0; at < execConcurrentMax; at++) own.call({ argv: ["sleep", "1000"] });
    const { status, answer } = await own.ask({ command: "true" }, { id: "more" });
    expect(status).toBe(429);
    expect(answer).toMatchObject({ error: { code: "too_many", limit: execConcurrentMax } });
    await own.close();
    await until("nothing runs", isRunning(0));
  });

  test("[X54] what is no call of a command closes the line and ends what it called, and nothing else", async () => {
    const call = { id: "e", path: "/v1/exec", fence: 0, requestId: "r", body: "{}" };
    const messages = [
      ...["", "{}", "[]\n{}", `["e","/v1/exec",0]\n{}`, Buffer.from(writeCall(call))],
      // None of these is a path or a header that a request could be made of.
      ...[":x", "@other/v1/exec", "/v1/exec?", "/v1/sessions/../exec", ""].map((path) =>
        writeCall({ ...call, path }),
      ),
      // Their answers are no commands'.
      ...["/v1/line", "/v1/ports/80/", "/v1/processes", "/v1/later/e"].map((path) =>
        writeCall({ ...call, path }),
      ),
      writeCall({ ...call, requestId: "a\nb" }),
      writeCall({ ...call, requestId: "😀" }),
      writeCall({ ...call, fence: -1 }),
    ];
    const other = agent.post({ command: "until [ -e other ]; do sleep 0.1; done" });
    await until("it runs", isRunning(1));
    for (const message of messages) {
      const wrong = await Line.open(agent);
      wrong.call({ command: "sleep 1000" });
      await until("both run", isRunning(2));
      wrong.atOnce(() => {
        wrong.say(message);
        wrong.call({ command: "touch after" });
      });
      expect(await wrong.ended(), String(message)).toBe(1002);
      await until("its command has ended", isRunning(1));
      expect(wrong.told.filter(({ status }) => status !== later)).toEqual([]);
    }
    const large = await Line.open(agent);
    large.call({ command: "sleep 1000" });
    await until("both run", isRunning(2));
    large.say("x".repeat(17 * 1024 * 1024));
    expect(await large.ended()).toBe(1009);
    await until("its command has ended", isRunning(1));
    await agent.sh("touch other");
    expect(await (await other).json()).toMatchObject({ exitCode: 0 });
    expect(existsSync(`${agent.workspace}/after`)).toBe(false);
    expect(agent.log).toBe("");
  });
});
