import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { ErrorBody } from "../../../src/protocol/errors.ts";
import type { ExecResult } from "../../../src/protocol/exec.ts";
import { limits } from "../../../src/protocol/limits.ts";
import { Agent, fenced } from "../agent.ts";

describe("commands whose results are stored", () => {
  const agent = Agent.forBlock();

  const keep = (execId: string, command: string, more: object = {}, init: RequestInit = {}) =>
    agent.post({ execId, keep: true, command, ...more }, init);
  const fetchStored = (execId: string) => agent.request(`/v1/execs/${execId}`);
  const lines = (file: string) =>
    readFileSync(join(agent.workspace, file), "utf8").trim().split("\n");

  test("[K1] a repeated call and a request by id get the same bytes, and the command ran once", async () => {
    const first = await (await keep("once", "echo ran >> once; date +%N")).text();
    expect(JSON.parse(first)).toMatchObject({ execId: "once", exitCode: 0 });
    for (let i = 0; i < 3; i += 1) {
      expect(await (await keep("once", "echo ran >> once; date +%N")).text()).toBe(first);
      expect(await (await fetchStored("once")).text()).toBe(first);
    }
    expect(lines("once")).toEqual(["ran"]);
  });

  test("[K1] fifty concurrent calls with one id are one command with one result", async () => {
    const command = "echo ran >> fifty; until [ -e go ]; do sleep 0.02; done; date +%N";
    const calls = Array.from({ length: 50 }, (_, n) =>
      (n % 5 === 4
        ? agent.untilRunning(1).then(() => fetchStored("fifty"))
        : keep("fifty", command)
      ).then((response) => response.text()),
    );
    await agent.untilRunning(1);
    await agent.sh("touch go");
    const answers = await Promise.all(calls);
    expect(lines("fifty")).toEqual(["ran"]);
    expect(JSON.parse(answers[0] ?? "")).toMatchObject({ execId: "fifty", exitCode: 0 });
    expect(new Set(answers).size).toBe(1);
  });

  test("[K1] a call that joins a long command waits like its first caller, behind a heartbeat", async () => {
    const first = keep("long", "sleep 3; echo done");
    await agent.untilRunning(1);
    const joined = await fetchStored("long");
    expect(joined.headers.get("content-length")).toBeNull();
    const text = await joined.text();
    expect(text).toMatch(/^ +\{/);
    expect(text.trim()).toBe((await (await first).text()).trim());
    expect(JSON.parse(text)).toMatchObject({ stdout: "done\n" });
  });

  test("[K2] when the caller disconnects, a command with a key continues, and one without ends", async () => {
    const command = (file: string) =>
      `echo $$ > ${file}; until [ -e end ]; do sleep 0.05; done; echo it`;
    const leave = new AbortController();
    const { signal } = leave;
    const continued = keep("left", command("kept"), {}, { signal });
    const ended = agent.post({ command: command("lost"), execId: "lost" }, { signal });
    await agent.untilRunning(2);
    // Past the first heartbeat, from which on the agent notices a disconnect.
    await Promise.all([continued, ended]);
    leave.abort();
    await agent.untilRunning(1);
    await agent.sh("touch end");
    const answer = (await (await fetchStored("left")).json()) as ExecResult;
    expect(answer).toMatchObject({ exitCode: 0, stdout: "it\n" });
    expect((await fetchStored("lost")).status).toBe(404);
    expect((await agent.health()).running).toBe(0);
  });

  test("[K3] a result that newer ones have evicted leaves its exit code", async () => {
    const large = { maxOutputBytes: limits.execOutputMaxBytes };
    const command = `head -c ${limits.execOutputMaxBytes} /dev/zero | tr '\\0' x; exit 7`;
    const count = limits.storedResultsBytesMax / limits.execOutputMaxBytes;
    for (let n = 0; n < count; n += 1) {
      const answer = (await (await keep(`large${n}`, command, large)).json()) as ExecResult;
      expect(answer.stdout.length).toBe(limits.execOutputMaxBytes);
    }
    const evicted = await fetchStored("large0");
    expect(evicted.status).toBe(410);
    expect(((await evicted.json()) as ErrorBody).error).toMatchObject({
      ...{ code: "result_gone", exitCode: 7, signal: null, timedOut: false },
    });
    expect((await keep("large0", command, large)).status).toBe(410);
    expect((await fetchStored(`large${count - 1}`)).status).toBe(200);
  });

  test("[K5] a command that did not start can be called again under its id", async () => {
    expect((await keep("folder", "echo in", { cwd: "sub" })).status).toBe(400);
    expect((await fetchStored("folder")).status).toBe(404);
    await agent.sh("mkdir sub");
    expect(await (await keep("folder", "echo in", { cwd: "sub" })).json()).toMatchObject({
      stdout: "in\n",
    });
  });

  test("[K5] an id that never started is unknown, and a request for it starts nothing", async () => {
    const unknown = await fetchStored("never");
    expect(unknown.status).toBe(404);
    expect(((await unknown.json()) as ErrorBody).error.code).toBe("not_found");
    const wrong = await agent.request("/v1/execs/never", { method: "POST", body: "{}" });
    expect(wrong.status).toBe(405);
  });

  test("[K6] a command that its lost lease ended returns that error to every request, and does not run again", async () => {
    const command = "echo ran >> fenced; sleep 1000";
    const first = keep("fenced", command, {}, fenced(5));
    await agent.untilRunning(1);
    const joined = fetchStored("fenced");
    expect(await agent.raiseFence(6, true)).toEqual({ fence: 6, left: 0 });
    const repeated = keep("fenced", command, {}, fenced(6));
    for (const answer of await Promise.all([first, joined, repeated])) {
      expect(answer.status).toBe(502);
      expect(((await answer.json()) as ErrorBody).error).toMatchObject({
        ...{ code: "operation_interrupted", admitted: true, reason: "lease_lost" },
      });
    }
    expect(lines("fenced")).toEqual(["ran"]);
  });
});
