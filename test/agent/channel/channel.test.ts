import { existsSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { deferredStatus, writeCall } from "../../../src/protocol/internal/agent-channel.ts";
import { limits } from "../../../src/protocol/limits.ts";
import { until } from "../../until.ts";
import { Agent, kinds } from "../agent.ts";
import { Sessions } from "../sessions/sessions.ts";
import { ChannelClient, openSocket } from "./channel.ts";

describe.each(kinds)("the channel of an agent, process trees in a %s", (tree) => {
  const agent = Agent.forBlock({ tree });
  let channel: ChannelClient;
  beforeAll(async () => {
    channel = await ChannelClient.open(agent);
  });
  afterAll(() => channel.close());

  test("[X52] it opens with the secret and for the right incarnation, with the headers of every response", async () => {
    const meant = { "berth-incarnation": agent.incarnation };
    const { socket, answer } = await openSocket(agent, { headers: meant });
    expect(answer.statusCode).toBe(101);
    expect(answer.headers).toMatchObject({ ...meant, "berth-protocol": "2" });
    socket?.close();
    const other = { "berth-incarnation": `${agent.startId}.aaaaaaaaaaaaaaaa` };
    expect((await openSocket(agent, { headers: other })).answer.statusCode).toBe(410);
    expect((await openSocket(agent, { secret: "wrong" })).answer.statusCode).toBe(401);
  });

  test("[X52] a request that is not a WebSocket upgrade is refused", async () => {
    const plain = await agent.request("/v1/line");
    expect(plain.status).toBe(426);
    expect(await plain.json()).toMatchObject({ error: { code: "upgrade_required" } });
    expect((await agent.request("/v1/line", { method: "POST" })).status).toBe(405);
  });

  test("[X52] an open channel neither keeps the sandbox busy nor counts as a viewer", async () => {
    await channel.request({ command: "true" });
    const before = await agent.work();
    expect(before).toMatchObject({ execs: 0, attached: 0 });
    expect(before.idleMs).toBeGreaterThan(0);
    await until("it is idle for longer", async () => (await agent.work()).idleMs > before.idleMs);
  });

  /** Without what differs from run to run. */
  const normalize = (answer: unknown) => ({ ...(answer as object), durationMs: 0, execId: "" });

  test("[X53] a command gets the same response as by POST", async () => {
    const calls = [
      { command: "echo out; echo err >&2; exit 3" },
      { argv: ["cat"], stdin: "ü\0\n", encoding: "utf8" as const },
      { command: "head -c 300 /dev/urandom | head -c 0; kill -9 $$", encoding: "base64" as const },
      { command: "sleep 100", timeoutMs: 1 },
      { command: "head -c 5000 /dev/zero | tr '\\0' x", maxOutputBytes: 1000 },
      { command: "pwd; echo $A", cwd: "/", env: { A: "a" } },
    ];
    for (const call of calls) {
      const { status, answer } = await channel.request(call);
      expect(status).toBe(200);
      const posted = await agent.exec(call);
      expect(normalize(answer)).toEqual(normalize(posted));
      expect(Object.keys(answer as object)).toEqual(Object.keys(posted));
    }
  });

  test("[X53] a command of a session gets the same response as by POST, in the order of the calls", async () => {
    const sessions = new Sessions(agent);
    const id = await sessions.make();
    const path = `/v1/sessions/${id}/exec`;
    expect((await channel.request({ command: "cd /; A=1" }, { path })).status).toBe(200);
    const call = { command: "pwd; echo $A" };
    const { status, answer } = await channel.request(call, { path });
    expect(status).toBe(200);
    expect(answer).toMatchObject({ stdout: "/\n1\n", exitCode: 0 });
    expect(normalize(answer)).toEqual(normalize(await sessions.exec(id, call)));
    const inOrder: string[] = [];
    channel.sendTogether(() => {
      for (let n = 0; n < 20; n++) inOrder.push(channel.call({ command: `echo ${n}` }, { path }));
    });
    for (const [n, id] of inOrder.entries()) {
      expect(JSON.parse((await channel.response(id)).json)).toMatchObject({ stdout: `${n}\n` });
    }
    expect(channel.responses.slice(-20).map((response) => response.id)).toEqual(inOrder);
    await sessions.end(id);
  });

  test.each([
    ["a folder that does not exist", { command: "true", cwd: "/nope" }, {}, 400],
    ["a body that is not JSON", "{", {}, 400],
    ["a session that does not exist", { command: "true" }, { path: "/v1/sessions/none/exec" }, 404],
    ["too large a body", `{"command":"${"x".repeat(limits.bodyBytesMax)}"}`, {}, 413],
  ])("[X53] a call with %s is refused like by POST", async (_what, body, called, status) => {
    const { path = "/v1/exec" } = called as { path?: string };
    const response = await channel.request(body, { ...called, id: "refused" });
    channel.responses.length = 0;
    expect(response.status).toBe(status);
    const call = { execId: "refused", requestId: "request1" };
    const text = typeof body === "string" ? body : JSON.stringify({ ...call, ...body });
    const headers = { "berth-request-id": "request1" };
    const posted = await agent.request(path, { method: "POST", body: text, headers });
    expect(posted.status).toBe(status);
    expect(response.answer).toEqual(await posted.json());
  });

  test("[X53] a call below the fence is refused, and nothing is run", async () => {
    await using own = await Agent.start({ tree });
    await using fenced = await ChannelClient.open(own);
    expect((await fenced.request({ command: "true" }, { fence: 7 })).status).toBe(200);
    const { status, answer } = await fenced.request({ command: "touch late" }, { fence: 6 });
    expect(status).toBe(409);
    expect(answer).toMatchObject({ error: { code: "stale_fence", fence: 7 } });
    expect(existsSync(`${own.workspace}/late`)).toBe(false);
    expect((await fenced.request({ command: "true" }, { fence: 7 })).status).toBe(200);
  });

  test("[X53] many concurrent commands get their responses by id, each when it ends", async () => {
    const waitFor = (n: number) => ({ command: `until [ -e end${n} ]; do sleep 0.1; done` });
    const first = channel.call(waitFor(1));
    const second = channel.call(waitFor(2));
    await agent.untilRunning(2);
    const others = Array.from({ length: 30 }, (_, n) => channel.call({ command: `echo ${n}` }));
    for (const [n, id] of others.entries()) {
      const { status, json } = await channel.response(id);
      expect(status).toBe(200);
      expect(JSON.parse(json)).toMatchObject({ execId: id, stdout: `${n}\n` });
    }
    await agent.sh("touch end2");
    await channel.response(second);
    // On a slow machine its response may have been deferred.
    const early = channel.responses.find(({ id }) => id === first);
    expect(early?.status ?? deferredStatus).toBe(deferredStatus);
    await agent.sh("touch end1");
    await channel.response(first);
    expect(channel.responses.filter(({ id }) => id === first || id === second)).toHaveLength(2);
    await agent.untilRunning(0);
  });

  // A subreaper is a process of its own, so one kind of tree must suffice.
  test.runIf(tree === "cgroup")("[X53] one command too many is refused", async () => {
    const own = await ChannelClient.open(agent);
    const { execConcurrentMax } = limits;
    for (let n = 0; n < execConcurrentMax; n++) own.call({ argv: ["sleep", "1000"] });
    const { status, answer } = await own.request({ command: "true" }, { id: "more" });
    expect(status).toBe(429);
    expect(answer).toMatchObject({ error: { code: "too_many", limit: execConcurrentMax } });
    await own.close();
    await agent.untilRunning(0);
  });

  test("[X54] a message that is not a command closes the channel and ends its commands, and no others", async () => {
    const call = { id: "e", path: "/v1/exec", fence: 0, requestId: "r", body: "{}" };
    const messages = [
      ...["", "{}", "[]\n{}", `["e","/v1/exec",0]\n{}`, Buffer.from(writeCall(call))],
      // No request can be made of these paths and headers.
      ...[":x", "@other/v1/exec", "/v1/exec?", "/v1/sessions/../exec", ""].map((path) =>
        writeCall({ ...call, path }),
      ),
      // These paths are not commands.
      ...["/v1/line", "/v1/ports/80/", "/v1/processes", "/v1/later/e"].map((path) =>
        writeCall({ ...call, path }),
      ),
      writeCall({ ...call, requestId: "a\nb" }),
      writeCall({ ...call, requestId: "😀" }),
      writeCall({ ...call, fence: -1 }),
    ];
    const other = agent.post({ command: "until [ -e other ]; do sleep 0.1; done" });
    await agent.untilRunning(1);
    for (const message of messages) {
      const wrong = await ChannelClient.open(agent);
      wrong.call({ command: "sleep 1000" });
      await agent.untilRunning(2);
      wrong.sendTogether(() => {
        wrong.say(message);
        wrong.call({ command: "touch after" });
      });
      expect(await wrong.waitForClose(), String(message)).toBe(1002);
      await agent.untilRunning(1);
      expect(wrong.responses.filter(({ status }) => status !== deferredStatus)).toEqual([]);
    }
    const large = await ChannelClient.open(agent);
    large.call({ command: "sleep 1000" });
    await agent.untilRunning(2);
    large.say("x".repeat(17 * 1024 * 1024));
    expect(await large.waitForClose()).toBe(1009);
    await agent.untilRunning(1);
    await agent.sh("touch other");
    expect(await (await other).json()).toMatchObject({ exitCode: 0 });
    expect(existsSync(`${agent.workspace}/after`)).toBe(false);
    expect(agent.log).toBe("");
  });
});
