import { setTimeout as pause } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { errorBodySchema } from "../../../src/protocol/errors.ts";
import { execResultSchema } from "../../../src/protocol/exec.ts";
import { later } from "../../../src/protocol/internal/agent-channel.ts";
import { limits } from "../../../src/protocol/limits.ts";
import { Agent, kinds } from "../agent.ts";
import { until } from "../until.ts";
import { Line } from "./channel.ts";

describe.each(kinds)("answers of a line that wait to be taken, trees held by %s", (tree) => {
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

  const take = (id: string, init: RequestInit = {}) => agent.request(`/v1/later/${id}`, init);
  /** Told that it takes longer, or is longer. */
  const called = async (command: string, more: object = {}) => {
    const id = line.call({ command, timeoutMs: 600_000, ...more });
    expect(await line.answer(id)).toEqual({ id, status: later, json: "" });
    return id;
  };
  const untaken = async (id: string) => {
    const response = await take(id);
    expect(response.status).toBe(404);
    expect(errorBodySchema.parse(await response.json()).error.code).toBe("not_found");
  };

  test("[X55] what takes longer than 2 s is taken as its POST would answer, once", async () => {
    const before = performance.now();
    const id = await called("sleep 3.5; echo late");
    expect(performance.now() - before).toBeGreaterThan(limits.execHeartbeatAfterMs - 100);
    const response = await take(id);
    const second = untaken(id);
    expect(response.status).toBe(200);
    expect(response.headers.get("content-type")).toMatch(/^application\/json/);
    expect(response.headers.get("berth-incarnation")).toBe(agent.incarnation);
    const text = await response.text();
    expect(text).toMatch(/^ {2,}\{.*\}$/);
    expect(execResultSchema.parse(JSON.parse(text))).toMatchObject({
      execId: id,
      stdout: "late\n",
    });
    await second;
    await untaken(id);
  });

  test("[X55] what fails after that is an error in its answer", async () => {
    const id = await called("sleep 1000");
    const response = await take(id);
    const fence = { fence: 1, drain: true, waitMs: 20_000 };
    await agent.request("/v1/fence", { method: "POST", body: JSON.stringify(fence) });
    expect(response.status).toBe(200);
    const { error } = errorBodySchema.parse(await response.json());
    expect(error).toMatchObject({ code: "operation_interrupted", reason: "lease_lost" });
    expect(agent.left()).toEqual([]);
  });

  test.each([
    ["long", "head -c 200000 /dev/zero | tr '\\0' x", {}],
    ["of bytes that JSON makes longer", "head -c 50000 /dev/zero", {}],
    [
      "as long as there is",
      `head -c ${limits.execOutputMaxBytes} /dev/zero | tr '\\0' x`,
      { maxOutputBytes: limits.execOutputMaxBytes },
    ],
  ])("[X55] an answer that is %s is taken whole", async (_what, command, more) => {
    const id = line.call({ command, ...more }, { fence: 1 });
    expect((await line.answer(id)).status).toBe(later);
    const text = await (await take(id)).text();
    const posted = await agent.post({ command, ...more }, { headers: { "berth-fence": "1" } });
    const of = (json: string) => execResultSchema.parse(JSON.parse(json)).stdout;
    expect(text.length).toBeGreaterThan(limits.answerWholeBytesMax);
    expect(of(text) === of(await posted.text())).toBe(true);
    await untaken(id);
  });

  test("[X55] an answer of the largest short length comes by the line, and of one byte more does not", async () => {
    const id = (length: number) => `length${length}`;
    const ask = (length: number) => {
      const command = `head -c ${length} /dev/zero | tr '\\0' x`;
      return line.answer(line.call({ command }, { id: id(length), fence: 1 }));
    };
    const around = (await ask(10_000)).json.length - 10_000;
    // The time that it took is in it, in a few digits.
    const most = limits.answerWholeBytesMax - around;
    const short = await ask(most - 10);
    expect(short.status).toBe(200);
    expect(JSON.parse(short.json).stdout).toHaveLength(most - 10);
    expect((await ask(most + 10)).status).toBe(later);
    expect((await take(id(most + 10))).status).toBe(200);
  });

  test("[X55] whoever leaves what he has taken ends the command and all it started", async () => {
    const id = line.call(
      { command: `setsid sh -c 'trap "" TERM; sleep 1000' & sleep 1000`, timeoutMs: 600_000 },
      { fence: 1 },
    );
    expect((await line.answer(id)).status).toBe(later);
    const caller = new AbortController();
    const response = await take(id, { signal: caller.signal });
    expect(response.status).toBe(200);
    expect(agent.left().length).toBeGreaterThanOrEqual(3);
    caller.abort();
    await until("nothing of it is left", () => agent.left().length === 0);
    await untaken(id);
  });

  test("[X55] an id that comes again while it waits is the later call's", async () => {
    const call = (command: string) =>
      line.call({ command, timeoutMs: 600_000 }, { id: "again", fence: 1 });
    call("sleep 1000");
    await line.answer("again");
    line.told.length = 0;
    call("sleep 3; echo second");
    expect((await line.answer("again")).status).toBe(later);
    expect(JSON.parse(await (await take("again")).text())).toMatchObject({ stdout: "second\n" });
    await until("nothing of the first is left", () => agent.left().length === 0);
  });

  test.runIf(tree === kinds[0])(
    "[X56] what nobody takes is ended, and not before its time",
    async () => {
      const long = line.call(
        { command: `setsid sh -c 'trap "" TERM; sleep 1000' & sleep 1000`, timeoutMs: 600_000 },
        { fence: 1 },
      );
      const large = line.call({ command: "head -c 200000 /dev/zero" }, { fence: 1 });
      expect((await line.answer(large)).status).toBe(later);
      expect((await line.answer(long)).status).toBe(later);
      const toldAt = performance.now();
      await until("nothing of it is left", () => agent.left().length === 0);
      expect(performance.now() - toldAt).toBeGreaterThan(limits.agentHeadersMs - 2_000);
      await untaken(long);
      await untaken(large);
    },
  );

  test.runIf(tree === kinds[0])(
    "[X56] an agent that stands still does not count that time",
    async () => {
      const id = line.call({ command: "sleep 2.5; echo on" }, { fence: 1 });
      expect((await line.answer(id)).status).toBe(later);
      agent.process.kill("SIGSTOP");
      await pause(limits.agentHeadersMs + 3_000);
      agent.process.kill("SIGCONT");
      const text = await (await take(id)).text();
      expect(JSON.parse(text)).toMatchObject({ stdout: "on\n" });
    },
  );
});
