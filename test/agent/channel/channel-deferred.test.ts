import { setTimeout as pause } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { errorBodySchema } from "../../../src/protocol/errors.ts";
import { execResultSchema } from "../../../src/protocol/exec.ts";
import { deferredStatus } from "../../../src/protocol/internal/agent-channel.ts";
import { limits } from "../../../src/protocol/limits.ts";
import { until } from "../../until.ts";
import { Agent, kinds } from "../agent.ts";
import { ChannelClient } from "./channel.ts";

const stubborn = `setsid sh -c 'trap "" TERM; sleep 1000' & sleep 1000`;

describe.each(kinds)("deferred responses of a channel, process trees in a %s", (tree) => {
  const agent = Agent.forBlock({ tree });
  let channel: ChannelClient;
  beforeAll(async () => {
    channel = await ChannelClient.open(agent);
  });
  afterAll(() => channel.close());

  const take = (id: string, init: RequestInit = {}) => agent.request(`/v1/later/${id}`, init);
  /** Calls a command whose response is deferred. */
  const callDeferred = async (command: string, options = {}) => {
    const id = channel.call({ command, timeoutMs: 600_000 }, options);
    expect(await channel.response(id)).toEqual({ id, status: deferredStatus, json: "" });
    return id;
  };
  const expectTaken = async (id: string) => {
    const response = await take(id);
    expect(response.status).toBe(404);
    expect(errorBodySchema.parse(await response.json()).error.code).toBe("not_found");
  };

  test("[X55] a response that takes longer than 2 s is fetched like the response of a POST, once", async () => {
    const before = performance.now();
    const id = await callDeferred("sleep 3.5; echo late");
    expect(performance.now() - before).toBeGreaterThan(limits.execHeartbeatAfterMs - 100);
    const response = await take(id);
    const second = expectTaken(id);
    expect(response.status).toBe(200);
    expect(response.headers.get("content-type")).toMatch(/^application\/json/);
    expect(response.headers.get("berth-incarnation")).toBe(agent.incarnation);
    const text = await response.text();
    expect(text).toMatch(/^ {2,}\{.*\}$/);
    const result = execResultSchema.parse(JSON.parse(text));
    expect(result).toMatchObject({ execId: id, stdout: "late\n" });
    await second;
    await expectTaken(id);
  });

  test("[X55] a command that fails later has an error in its response", async () => {
    const id = await callDeferred("sleep 1000");
    const response = await take(id);
    await agent.raiseFence(1, true);
    expect(response.status).toBe(200);
    const { error } = errorBodySchema.parse(await response.json());
    expect(error).toMatchObject({ code: "operation_interrupted", reason: "lease_lost" });
    expect(agent.left()).toEqual([]);
  });

  test.each([
    ["long", "head -c 200000 /dev/zero | tr '\\0' x", {}],
    ["made of bytes that JSON makes longer", "head -c 50000 /dev/zero", {}],
    [
      "as long as possible",
      `head -c ${limits.execOutputMaxBytes} /dev/zero | tr '\\0' x`,
      { maxOutputBytes: limits.execOutputMaxBytes },
    ],
  ])("[X55] a response that is %s is fetched entirely", async (_what, command, more) => {
    const id = channel.call({ command, ...more }, { fence: 1 });
    expect((await channel.response(id)).status).toBe(deferredStatus);
    const text = await (await take(id)).text();
    const posted = await agent.post({ command, ...more }, { headers: { "berth-fence": "1" } });
    const stdoutOf = (json: string) => execResultSchema.parse(JSON.parse(json)).stdout;
    expect(text.length).toBeGreaterThan(limits.wholeResponseBytesMax);
    expect(stdoutOf(text) === stdoutOf(await posted.text())).toBe(true);
    await expectTaken(id);
  });

  test("[X55] a response of the largest short length arrives by the channel, a longer one does not", async () => {
    const id = (length: number) => `length${length}`;
    const respond = (length: number) => {
      const command = `head -c ${length} /dev/zero | tr '\\0' x`;
      return channel.response(channel.call({ command }, { id: id(length), fence: 1 }));
    };
    const overhead = (await respond(10_000)).json.length - 10_000;
    // The response contains its duration, in a few digits.
    const lengthMax = limits.wholeResponseBytesMax - overhead;
    const short = await respond(lengthMax - 10);
    expect(short.status).toBe(200);
    expect(JSON.parse(short.json).stdout).toHaveLength(lengthMax - 10);
    expect((await respond(lengthMax + 10)).status).toBe(deferredStatus);
    expect((await take(id(lengthMax + 10))).status).toBe(200);
  });

  test("[X55] a caller that disconnects from a fetched response ends the command and its whole tree", async () => {
    const id = await callDeferred(stubborn, { fence: 1 });
    const caller = new AbortController();
    const response = await take(id, { signal: caller.signal });
    expect(response.status).toBe(200);
    expect(agent.left().length).toBeGreaterThanOrEqual(3);
    caller.abort();
    await until("its tree has ended", () => agent.left().length === 0);
    await expectTaken(id);
  });

  test("[X55] a repeated id replaces the response that waits under it", async () => {
    const call = (command: string) =>
      channel.call({ command, timeoutMs: 600_000 }, { id: "again", fence: 1 });
    call("sleep 1000");
    await channel.response("again");
    channel.responses.length = 0;
    call("sleep 3; echo second");
    expect((await channel.response("again")).status).toBe(deferredStatus);
    expect(JSON.parse(await (await take("again")).text())).toMatchObject({ stdout: "second\n" });
    await until("the tree of the first call has ended", () => agent.left().length === 0);
  });

  test.runIf(tree === kinds[0])(
    "[X56] a response that nobody fetches is dropped with its command, and not too early",
    async () => {
      const calledAt = performance.now();
      const long = channel.call({ command: stubborn, timeoutMs: 600_000 }, { fence: 1 });
      const large = channel.call({ command: "head -c 200000 /dev/zero" }, { fence: 1 });
      expect((await channel.response(large)).status).toBe(deferredStatus);
      expect((await channel.response(long)).status).toBe(deferredStatus);
      await until("its tree has ended", () => agent.left().length === 0);
      // The time runs from the deferral, which comes after the call, so a slow machine only makes it longer.
      expect(performance.now() - calledAt).toBeGreaterThan(limits.agentHeadersMs);
      await expectTaken(long);
      await expectTaken(large);
    },
  );

  test.runIf(tree === kinds[0])(
    "[X56] the time during which an agent is frozen does not count",
    async () => {
      const id = await callDeferred("sleep 2.5; echo on", { fence: 1 });
      agent.process.kill("SIGSTOP");
      await pause(limits.agentHeadersMs + 3_000);
      agent.process.kill("SIGCONT");
      const text = await (await take(id)).text();
      expect(JSON.parse(text)).toMatchObject({ stdout: "on\n" });
    },
  );
});
