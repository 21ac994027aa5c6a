/** The line between an object and its agent, by which commands go that follow each other closely. */
import { runInDurableObject } from "cloudflare:test";
import { afterEach, describe, expect, it, vi } from "vitest";
import { limits } from "../../../src/protocol/limits.ts";
import { soon } from "../../contract/sandbox/world.ts";
import { call, createSandbox, json } from "../calls.ts";
import { machine } from "../machine.ts";
import { stubOf } from "../world.ts";

const of = (id: string, tail = "") => `/v1/sandboxes/${id}${tail}`;
const opened = "GET /v1/line";
const byLine = "LINE /v1/exec";
const byRequest = "POST /v1/exec";
const interrupted = (admitted: unknown) => ({
  error: { code: "operation_interrupted", admitted },
});

const run = (id: string, command: string, headers = {}) =>
  json(call("POST", of(id, "/exec"), { body: { command }, headers }));

async function timesOf(id: string): Promise<Record<string, number>> {
  const times: Record<string, number> = { [opened]: 0, [byLine]: 0, [byRequest]: 0 };
  for (const asked of (await machine(id).facts()).asked) {
    if (asked in times) times[asked] = (times[asked] ?? 0) + 1;
  }
  return times;
}

const ranIn = async (id: string, command: string) =>
  (await machine(id).facts()).ran.filter((one) => one === command).length;

/** Two that follow each other open it; what comes then goes by it. */
async function withLine(id: string): Promise<void> {
  const before = await timesOf(id);
  await soon(async () => {
    await Promise.all([run(id, "true"), run(id, "true")]);
    await run(id, "echo warm");
    expect((await timesOf(id))[byLine]).toBeGreaterThan(before[byLine] ?? 0);
  });
}

afterEach(() => vi.useRealTimers());

describe("commands that follow each other closely", () => {
  it("[U15] go by a line, and each has its own answer, long and refused ones too", async () => {
    const id = await createSandbox();
    await withLine(id);
    const before = await timesOf(id);
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
    expect(await json(call("POST", of(id, "/exec"), { body }))).toMatchObject({
      error: { code: "bad_cwd" },
    });
    const after = await timesOf(id);
    // What is long itself has a request of its own.
    expect(after[byLine]).toBe((before[byLine] ?? 0) + 37);
    expect(after[byRequest]).toBe((before[byRequest] ?? 0) + 4);
    expect((await machine(id).facts()).ran).toHaveLength(
      (after[byLine] ?? 0) + (after[byRequest] ?? 0) - 1,
    );
  });

  it("[U15] are answered whole where the answer is long or comes late", async () => {
    const id = await createSandbox();
    await withLine(id);
    const asked = run(id, "sleep 2.5; echo late");
    const long = await run(id, "seq 20000");
    expect(long.stdout).toHaveLength(108_894);
    expect(await asked).toMatchObject({ stdout: "late\n" });
    const later = (await machine(id).facts()).asked.filter((one) =>
      one.startsWith("GET /v1/later/"),
    );
    expect(later).toHaveLength(2);
  });
});

describe("a line that breaks", () => {
  it("[U16] leaves whoever waits told as interrupted, and nothing is run twice", async () => {
    const id = await createSandbox();
    const other = await createSandbox();
    await withLine(id);
    await withLine(other);
    await machine(id).spoilLine("cut");
    const told = await run(id, "echo cut");
    expect(told).toMatchObject(interrupted("unknown"));
    expect(await ranIn(id, "echo cut")).toBe(1);
    expect(await run(id, "echo on")).toMatchObject({ stdout: "on\n" });
    expect(await json(call("GET", of(id)))).toMatchObject({ state: "running" });
    const before = await timesOf(other);
    expect(await run(other, "echo on")).toMatchObject({ stdout: "on\n" });
    expect((await timesOf(other))[opened]).toBe(before[opened]);
  });

  it("[U16] after it said that it takes longer, and has nothing then, has begun", async () => {
    const id = await createSandbox();
    await withLine(id);
    await machine(id).spoilLine("lost");
    expect(await run(id, "echo lost")).toMatchObject(interrupted(true));
    await machine(id).spoilLine(null);
    expect(await run(id, "echo on")).toMatchObject({ stdout: "on\n" });
    expect(await ranIn(id, "echo lost")).toBe(1);
  });

  it("[U16] with its container, however that ends, leaves nobody waiting", async () => {
    for (const end of [
      (id: string) => machine(id).die(),
      (id: string) => json(call("DELETE", of(id, "?force=true"))),
    ]) {
      const id = await createSandbox();
      await withLine(id);
      await machine(id).spoilLine("silent");
      const waiting = [run(id, "echo one"), run(id, "echo two")];
      await soon(async () => expect(await ranIn(id, "echo two")).toBe(1));
      await end(id);
      for (const told of await Promise.all(waiting)) {
        expect(told).toMatchObject(interrupted("unknown"));
      }
    }
  });

  it("[U16] is opened once in its life: what comes then goes as requests, and a new life has a line again", async () => {
    const id = await createSandbox();
    await withLine(id);
    await machine(id).spoilLine("cut");
    await run(id, "echo cut");
    await machine(id).spoilLine(null);
    const before = await timesOf(id);
    for (let n = 0; n < 5; n++) {
      expect(await run(id, `echo ${n}`)).toMatchObject({ stdout: `${n}\n` });
    }
    const after = await timesOf(id);
    expect(after).toEqual({ ...before, [byRequest]: (before[byRequest] ?? 0) + 5 });
    await json(call("POST", of(id, "/pause")));
    await withLine(id);
  });
});

describe("the line of a life", () => {
  it("[U17] carries nothing of another one", async () => {
    const id = await createSandbox();
    await withLine(id);
    const { incarnation } = await run(id, "echo one");
    await machine(id).restartBehindOurBack();
    await json(call("POST", of(id, "/pause")));
    const before = await timesOf(id);
    const again = await run(id, "echo two");
    expect(again).toMatchObject({ stdout: "two\n" });
    expect(again.incarnation).not.toBe(incarnation);
    expect((await timesOf(id))[byLine]).toBe(before[byLine]);
    await withLine(id);
    expect((await run(id, "echo three")).incarnation).toBe(again.incarnation);
    expect((await machine(id).facts()).lines).toBe(1);
  });

  it("[U17] that comes up when the life is over is not used", async () => {
    const id = await createSandbox();
    await machine(id).holdAnswers(opened);
    await Promise.all([run(id, "true"), run(id, "true")]);
    await soon(async () => expect((await timesOf(id))[opened]).toBe(1));
    await json(call("POST", of(id, "/pause")));
    await json(call("POST", of(id, "/start")));
    await machine(id).letAnswersGo();
    expect(await run(id, "echo on")).toMatchObject({ stdout: "on\n" });
    await withLine(id);
    expect(await run(id, "echo on")).toMatchObject({ stdout: "on\n" });
  });

  it("[U18] is asked for once where the agent has none, and commands go as requests", async () => {
    const id = await createSandbox();
    await machine(id).hasNoLine();
    for (let n = 0; n < 8; n++) {
      expect(await run(id, `echo ${n}`)).toMatchObject({ stdout: `${n}\n` });
    }
    expect(await timesOf(id)).toEqual({ [opened]: 1, [byLine]: 0, [byRequest]: 8 });
  });
});

describe("an agent that says by its line", () => {
  const refusal = JSON.stringify({ error: { code: "no", message: "no" } });
  const hostile: Record<string, readonly (string | number)[]> = {
    "what nobody asked": ['["xnobodys",200]\n{}'],
    bytes: [4096],
    "what is too long": [`["ID",200]\n${" ".repeat(100_000)}{}`],
    "no head": ["{}"],
    "no JSON": ['["ID",\n{}'],
    "a status that there is not": ['["ID",101]\n{}'],
    "nests without end": [`${"[".repeat(60_000)}\n{}`],
    "a flood": Array(2000).fill('["xnobodys",200]\n{}'),
  };

  it.each(Object.entries(hostile))("[U19] %s: its line ends, and nothing else", async (_, says) => {
    const id = await createSandbox();
    await withLine(id);
    await machine(id).spoilLine({ says });
    const at = Date.now();
    expect(await run(id, "echo one")).toMatchObject(interrupted("unknown"));
    expect(Date.now() - at).toBeLessThan(limits.agentHeadersMs);
    await soon(async () => expect((await machine(id).facts()).lines).toBe(0));
    await machine(id).spoilLine(null);
    expect(await run(id, "echo on")).toMatchObject({ stdout: "on\n" });
    expect(await ranIn(id, "echo one")).toBe(1);
  });

  it.each([
    ["no object", '["ID",200]\n1'],
    ["a refusal that is none", `["ID",500]\n${refusal}`],
    ["nothing", '["ID",200]\n'],
  ])("[U19] %s as an answer: it is none", async (_, said) => {
    const id = await createSandbox();
    await withLine(id);
    await machine(id).spoilLine({ says: [said] });
    expect(await run(id, "echo one")).toMatchObject(interrupted(true));
    await machine(id).spoilLine(null);
    expect(await run(id, "echo on")).toMatchObject({ stdout: "on\n" });
  });

  it("[U19] an answer twice: the first is told, and the second to nobody", async () => {
    const id = await createSandbox();
    await withLine(id);
    const twice = '["ID",200]\n{"stdout":"mine"}';
    await machine(id).spoilLine({ says: [twice, twice] });
    expect(await run(id, "echo one")).toMatchObject({ stdout: "mine" });
    await soon(async () => expect((await machine(id).facts()).lines).toBe(0));
    await machine(id).spoilLine(null);
    expect(await run(id, "echo on")).toMatchObject({ stdout: "on\n" });
  });
});

describe("a line that nobody uses", () => {
  it.each([0, -3_600_000, 3_600_000])(
    "[U20] is closed soon, also where the clock steps by %d ms",
    async (stepMs) => {
      const id = await createSandbox();
      await withLine(id);
      expect((await machine(id).facts()).lines).toBe(1);
      await runInDurableObject(stubOf(id), () => {
        vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + stepMs });
      });
      await vi.waitFor(async () => expect((await machine(id).facts()).lines).toBe(0), 5_000);
      vi.useRealTimers();
      expect(await run(id, "echo on")).toMatchObject({ stdout: "on\n" });
      await withLine(id);
    },
  );

  it("[U20] stays while a command by it waits, and takes those that come at any moment", async () => {
    const id = await createSandbox();
    await withLine(id);
    const before = await timesOf(id);
    for (const pauseMs of [970, 1_000, 1_030, 2_000]) {
      await new Promise((resolve) => setTimeout(resolve, pauseMs));
      const told = await Promise.all([run(id, "echo one"), run(id, "echo two")]);
      expect(told.map(({ stdout }) => stdout)).toEqual(["one\n", "two\n"]);
    }
    const after = await timesOf(id);
    expect((after[byLine] ?? 0) + (after[byRequest] ?? 0)).toBe(
      (before[byLine] ?? 0) + (before[byRequest] ?? 0) + 8,
    );
  });
});

describe("a command by the line", () => {
  it("[U15] is sent again where the fence has grown beside it, and runs once", async () => {
    const id = await createSandbox();
    await withLine(id);
    const before = await timesOf(id);
    await machine(id).holdCalls(byRequest);
    const asked = run(id, "echo behind");
    await soon(async () => expect((await timesOf(id))[byLine]).toBe((before[byLine] ?? 0) + 1));
    // Another call fails, and nothing that was sent before may begin.
    await machine(id).deafTo("POST /v1/processes");
    const { fence } = await machine(id).facts();
    const failed = await json(call("POST", of(id, "/processes"), { body: { command: "true" } }));
    expect(failed).toMatchObject(interrupted("unknown"));
    expect((await machine(id).facts()).fence).toBeGreaterThan(fence);
    await machine(id).letAnswersGo();
    expect(await asked).toMatchObject({ stdout: "behind\n" });
    expect(await ranIn(id, "echo behind")).toBe(1);
    expect((await timesOf(id))[byLine]).toBe((before[byLine] ?? 0) + 2);
  });
});
