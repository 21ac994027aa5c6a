/** The channel between an object and its agent, which carries commands in quick succession. */
import { runInDurableObject } from "cloudflare:test";
import { afterEach, describe, expect, it, vi } from "vitest";
import { limits } from "../../../src/protocol/limits.ts";
import { eventually } from "../../contract/sandbox/world.ts";
import * as api from "../api.ts";
import { call, createSandbox, json, pathOf, stubOf } from "../calls.ts";
import { containerOf } from "../container.ts";

const openRequest = "GET /v1/line";
const overChannel = "CHANNEL /v1/exec";
const overHttp = "POST /v1/exec";
const interrupted = (admitted: unknown) => ({ error: { code: "operation_interrupted", admitted } });

const run = (id: string, command: string, headers = {}) =>
  json(call("POST", pathOf(id, "/exec"), { body: { command }, headers }));

async function countRequests(id: string): Promise<Record<string, number>> {
  const times: Record<string, number> = { [openRequest]: 0, [overChannel]: 0, [overHttp]: 0 };
  for (const request of (await api.facts(id)).requests) {
    if (request in times) times[request] = (times[request] ?? 0) + 1;
  }
  return times;
}

const runsOf = async (id: string, command: string) =>
  (await api.facts(id)).ran.filter((ran) => ran === command).length;

/** Two commands in quick succession open it; the next one uses it. */
async function openChannel(id: string): Promise<void> {
  const before = await countRequests(id);
  await eventually(async () => {
    await Promise.all([run(id, "true"), run(id, "true")]);
    await run(id, "echo warm");
    expect((await countRequests(id))[overChannel]).toBeGreaterThan(before[overChannel] ?? 0);
  });
}

afterEach(() => vi.useRealTimers());

describe("commands in quick succession", () => {
  it("[U15] go over a channel, and each gets its own response, also if it is long or refused", async () => {
    const id = await createSandbox();
    await openChannel(id);
    const before = await countRequests(id);
    const long = "x".repeat(100_000);
    const texts = Array.from({ length: 40 }, (_, n) => (n % 10 === 3 ? `${n}${long}` : `${n}`));
    const answers = await Promise.all(
      texts.map((text, n) => run(id, n % 10 === 7 ? `exit ${n}` : `echo ${text}`)),
    );
    for (const [n, text] of texts.entries()) {
      const expected = n % 10 === 7 ? { exitCode: n } : { stdout: `${text}\n`, exitCode: 0 };
      expect(answers[n]).toMatchObject(expected);
    }
    const body = { command: "true", cwd: "/nowhere" };
    expect(await api.request("POST", id, "/exec", body)).toMatchObject({
      error: { code: "bad_cwd" },
    });
    const after = await countRequests(id);
    // Long commands go over HTTP.
    expect(after[overChannel]).toBe((before[overChannel] ?? 0) + 37);
    expect(after[overHttp]).toBe((before[overHttp] ?? 0) + 4);
    expect((await api.facts(id)).ran).toHaveLength(
      (after[overChannel] ?? 0) + (after[overHttp] ?? 0) - 1,
    );
  });

  it("[U15] get complete responses that are long or late", async () => {
    const id = await createSandbox();
    await openChannel(id);
    const running = run(id, "sleep 2.5; echo late");
    const long = await run(id, "seq 20000");
    expect(long.stdout).toHaveLength(108_894);
    expect(await running).toMatchObject({ stdout: "late\n" });
    const later = (await api.facts(id)).requests.filter((line) =>
      line.startsWith("GET /v1/later/"),
    );
    expect(later).toHaveLength(2);
  });
});

describe("a channel that breaks", () => {
  it("[U16] interrupts the waiting commands, and runs none twice", async () => {
    const id = await createSandbox();
    const other = await createSandbox();
    await openChannel(id);
    await openChannel(other);
    await containerOf(id).setChannelFault("cut");
    const result = await run(id, "echo cut");
    expect(result).toMatchObject(interrupted("unknown"));
    expect(await runsOf(id, "echo cut")).toBe(1);
    expect(await run(id, "echo on")).toMatchObject({ stdout: "on\n" });
    expect(await api.get(id)).toMatchObject({ state: "running" });
    const before = await countRequests(other);
    expect(await run(other, "echo on")).toMatchObject({ stdout: "on\n" });
    expect((await countRequests(other))[openRequest]).toBe(before[openRequest]);
  });

  it("[U16] after deferring a response that is then missing, reports the command as admitted", async () => {
    const id = await createSandbox();
    await openChannel(id);
    await containerOf(id).setChannelFault("lost");
    expect(await run(id, "echo lost")).toMatchObject(interrupted(true));
    await containerOf(id).setChannelFault(null);
    expect(await run(id, "echo on")).toMatchObject({ stdout: "on\n" });
    expect(await runsOf(id, "echo lost")).toBe(1);
  });

  it("[U16] with its container leaves no command waiting", async () => {
    for (const end of [
      (id: string) => containerOf(id).exit(),
      (id: string) => api.request("DELETE", id, "?force=true"),
    ]) {
      const id = await createSandbox();
      await openChannel(id);
      await containerOf(id).setChannelFault("silent");
      const waiting = [run(id, "echo one"), run(id, "echo two")];
      await eventually(async () => expect(await runsOf(id, "echo two")).toBe(1));
      await end(id);
      for (const result of await Promise.all(waiting)) {
        expect(result).toMatchObject(interrupted("unknown"));
      }
    }
  });

  it("[U16] is not opened again in this incarnation; the next one has a channel again", async () => {
    const id = await createSandbox();
    await openChannel(id);
    await containerOf(id).setChannelFault("cut");
    await run(id, "echo cut");
    await containerOf(id).setChannelFault(null);
    const before = await countRequests(id);
    for (let n = 0; n < 5; n++) {
      expect(await run(id, `echo ${n}`)).toMatchObject({ stdout: `${n}\n` });
    }
    const after = await countRequests(id);
    expect(after).toEqual({ ...before, [overHttp]: (before[overHttp] ?? 0) + 5 });
    await api.request("POST", id, "/pause");
    await openChannel(id);
  });
});

describe("the channel of an incarnation", () => {
  it("[U17] carries nothing for another incarnation", async () => {
    const id = await createSandbox();
    await openChannel(id);
    const { incarnation } = await run(id, "echo one");
    await containerOf(id).replaceAgent();
    await api.request("POST", id, "/pause");
    const before = await countRequests(id);
    const next = await run(id, "echo two");
    expect(next).toMatchObject({ stdout: "two\n" });
    expect(next.incarnation).not.toBe(incarnation);
    expect((await countRequests(id))[overChannel]).toBe(before[overChannel]);
    await openChannel(id);
    expect((await run(id, "echo three")).incarnation).toBe(next.incarnation);
    expect((await api.facts(id)).openChannels).toBe(1);
  });

  it("[U17] is not used if it opens after its incarnation has ended", async () => {
    const id = await createSandbox();
    await containerOf(id).holdResponses(openRequest);
    await Promise.all([run(id, "true"), run(id, "true")]);
    await eventually(async () => expect((await countRequests(id))[openRequest]).toBe(1));
    await api.request("POST", id, "/pause");
    await api.request("POST", id, "/start");
    await containerOf(id).releaseHeld();
    expect(await run(id, "echo on")).toMatchObject({ stdout: "on\n" });
    await openChannel(id);
    expect(await run(id, "echo on")).toMatchObject({ stdout: "on\n" });
  });

  it("[U18] is tried once if the agent has no such route; commands go over HTTP", async () => {
    const id = await createSandbox();
    await containerOf(id).removeChannelRoute();
    for (let n = 0; n < 8; n++) {
      expect(await run(id, `echo ${n}`)).toMatchObject({ stdout: `${n}\n` });
    }
    expect(await countRequests(id)).toEqual({ [openRequest]: 1, [overChannel]: 0, [overHttp]: 8 });
  });
});

describe("an agent that sends over its channel", () => {
  const refusal = JSON.stringify({ error: { code: "no", message: "no" } });
  const hostile: Record<string, readonly (string | number)[]> = {
    "a response to no command": ['["xnobodys",200]\n{}'],
    bytes: [4096],
    "a message that is too long": [`["ID",200]\n${" ".repeat(100_000)}{}`],
    "no head": ["{}"],
    "no JSON": ['["ID",\n{}'],
    "an unknown status": ['["ID",101]\n{}'],
    "endless nesting": [`${"[".repeat(60_000)}\n{}`],
    "a flood": Array(2000).fill('["xnobodys",200]\n{}'),
  };

  it.each(Object.entries(hostile))(
    "[U19] %s, loses the channel and nothing else",
    async (_, messages) => {
      const id = await createSandbox();
      await openChannel(id);
      await containerOf(id).setChannelFault({ sends: messages });
      const startedAt = Date.now();
      expect(await run(id, "echo one")).toMatchObject(interrupted("unknown"));
      expect(Date.now() - startedAt).toBeLessThan(limits.agentHeadersMs);
      await eventually(async () => expect((await api.facts(id)).openChannels).toBe(0));
      await containerOf(id).setChannelFault(null);
      expect(await run(id, "echo on")).toMatchObject({ stdout: "on\n" });
      expect(await runsOf(id, "echo one")).toBe(1);
    },
  );

  it.each([
    ["no object", '["ID",200]\n1'],
    ["an invalid error", `["ID",500]\n${refusal}`],
    ["nothing", '["ID",200]\n'],
  ])("[U19] %s as a response, has not responded", async (_, message) => {
    const id = await createSandbox();
    await openChannel(id);
    await containerOf(id).setChannelFault({ sends: [message] });
    expect(await run(id, "echo one")).toMatchObject(interrupted(true));
    await containerOf(id).setChannelFault(null);
    expect(await run(id, "echo on")).toMatchObject({ stdout: "on\n" });
  });

  it("[U19] a response twice, is heard once", async () => {
    const id = await createSandbox();
    await openChannel(id);
    const twice = '["ID",200]\n{"stdout":"mine"}';
    await containerOf(id).setChannelFault({ sends: [twice, twice] });
    expect(await run(id, "echo one")).toMatchObject({ stdout: "mine" });
    await eventually(async () => expect((await api.facts(id)).openChannels).toBe(0));
    await containerOf(id).setChannelFault(null);
    expect(await run(id, "echo on")).toMatchObject({ stdout: "on\n" });
  });
});

describe("an idle channel", () => {
  it.each([0, -3_600_000, 3_600_000])(
    "[U20] is closed soon, also if the clock steps by %d ms",
    async (stepMs) => {
      const id = await createSandbox();
      await openChannel(id);
      expect((await api.facts(id)).openChannels).toBe(1);
      await runInDurableObject(stubOf(id), () => {
        vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + stepMs });
      });
      await vi.waitFor(async () => expect((await api.facts(id)).openChannels).toBe(0), 5_000);
      vi.useRealTimers();
      expect(await run(id, "echo on")).toMatchObject({ stdout: "on\n" });
      await openChannel(id);
    },
  );

  it("[U20] stays open while a command waits, and takes commands at any moment", async () => {
    const id = await createSandbox();
    await openChannel(id);
    const before = await countRequests(id);
    for (const pauseMs of [970, 1_000, 1_030, 2_000]) {
      await new Promise((resolve) => setTimeout(resolve, pauseMs));
      const results = await Promise.all([run(id, "echo one"), run(id, "echo two")]);
      expect(results.map(({ stdout }) => stdout)).toEqual(["one\n", "two\n"]);
    }
    const after = await countRequests(id);
    expect((after[overChannel] ?? 0) + (after[overHttp] ?? 0)).toBe(
      (before[overChannel] ?? 0) + (before[overHttp] ?? 0) + 8,
    );
  });
});

describe("a command over the channel", () => {
  it("[U15] is sent again if the fence has grown meanwhile, and runs once", async () => {
    const id = await createSandbox();
    await openChannel(id);
    const before = await countRequests(id);
    await containerOf(id).holdRequests(overHttp);
    const running = run(id, "echo behind");
    await eventually(async () =>
      expect((await countRequests(id))[overChannel]).toBe((before[overChannel] ?? 0) + 1),
    );
    // Another call fails, and nothing that was sent before it may start.
    await containerOf(id).failRequests("POST /v1/processes");
    const { fence } = await api.facts(id);
    const failed = await api.request("POST", id, "/processes", { command: "true" });
    expect(failed).toMatchObject(interrupted("unknown"));
    expect((await api.facts(id)).fence).toBeGreaterThan(fence);
    await containerOf(id).releaseHeld();
    expect(await running).toMatchObject({ stdout: "behind\n" });
    expect(await runsOf(id, "echo behind")).toBe(1);
    expect((await countRequests(id))[overChannel]).toBe((before[overChannel] ?? 0) + 2);
  });
});
