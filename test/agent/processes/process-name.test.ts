import { existsSync } from "node:fs";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { AgentHealth } from "../../../src/protocol/internal/agent.ts";
import { limits } from "../../../src/protocol/limits.ts";
import {
  handleSchema,
  type Process,
  type ProcessInput,
  processCallSchema,
} from "../../../src/protocol/process.ts";
import { until } from "../../until.ts";
import { Agent, fenced, kinds } from "../agent.ts";
import { canFreeze, freeze } from "../freeze.ts";
import { environmentOf } from "../proc.ts";
import { Sessions } from "../sessions/sessions.ts";
import { Asker, newId, refusalOf } from "./processes.ts";

/** Ignores TERM, so that only KILL ends it, two seconds later. */
const stubborn = 'trap "" TERM; echo up; while :; do sleep 1000; done';
const replace = "replace" as const;

describe.each(kinds)("processes by name, their trees held by %s", (tree) => {
  const agent = Agent.forBlock({ tree });
  const ask = new Asker(agent);
  let names = 0;

  /** Each test continues with the fence that the previous one left. */
  let fence = 0;
  const drain = async () => {
    fence += 1;
    expect(await agent.raiseFence(fence, true)).toEqual({ fence, left: 0 });
  };

  const newName = () => {
    names += 1;
    return `name-${names}`;
  };
  const read = async (answer: Response) => {
    expect([200, 201], await answer.clone().text()).toContain(answer.status);
    return (await answer.json()) as Process;
  };
  const replaced = async (call: Partial<ProcessInput> & { id?: string; name: string }) =>
    read(await ask.post({ argv: ["sleep", "1000"], ...call, ifRunning: replace }));
  const runningAs = (name: string) => ask.list({ name, state: "running" });
  const health = async () => (await (await agent.request("/v1/health")).json()) as AgentHealth;
  const isKnown = async (id: string) => (await agent.request(`/v1/processes/${id}`)).ok;
  const up = async ({ id }: Process) => {
    expect((await ask.wait(id, { for: "log:up" })).met).toBe(true);
  };

  test("[P34] a name belongs to one process while it runs, and is free after its exit", async () => {
    const name = newName();
    const running = await ask.start({ name, argv: ["sleep", "1000"] });
    expect(running).toMatchObject({ name, state: "running" });
    for (const ifRunning of [undefined, "refuse"]) {
      const refused = await ask.post({ name, command: "touch ran", ifRunning });
      const facts = { status: 409, code: "name_taken", name, id: running.id };
      expect(await refusalOf(refused)).toMatchObject(facts);
    }
    expect((await agent.sh("ls ran")).exitCode).not.toBe(0);
    const other = await ask.start({ name: newName(), argv: ["sleep", "1000"] });
    expect((await ask.start({ argv: ["true"] })).name).toBeUndefined();
    await ask.end(running.id);
    const two = await ask.start({ name, argv: ["sleep", "1000"] });
    const listed = await ask.list({ name });
    expect(listed.map(({ id, state }) => [id, state])).toEqual([
      [two.id, "running"],
      [running.id, "exited"],
    ]);
    expect(listed.every((process) => process.name === name)).toBe(true);
    for (const { id } of [two, other]) await ask.end(id);
  });

  test("[P34] of any number of calls that start a process of one name at once, one succeeds", async () => {
    const name = newName();
    const call = { name, argv: ["sleep", "1000"] };
    const answers = await Promise.all(Array.from({ length: 20 }, () => ask.post(call)));
    expect(answers.map(({ status }) => status).sort()).toEqual([201, ...Array(19).fill(409)]);
    const [runs, ...others] = await runningAs(name);
    expect(others).toEqual([]);
    expect(await ask.list({ name })).toHaveLength(1);
    await ask.end(runs?.id ?? "");
  });

  test("[P34] what is not a name is refused by its field", async () => {
    const texts = fc.oneof(fc.string({ unit: "binary" }), fc.constantFrom("", "a b", "-a", "../x"));
    const bad = fc
      .sample(texts, 60)
      .concat("x".repeat(65))
      .filter((name) => !handleSchema.safeParse(name).success);
    expect(bad.length).toBeGreaterThan(20);
    const fieldsOf = (call: Record<string, unknown>) =>
      processCallSchema
        .safeParse({ command: "true", ...call })
        .error?.issues.map(({ path }) => path[0]);
    for (const name of [...bad, 5, null, ["a"]]) expect(fieldsOf({ name })).toEqual(["name"]);
    expect(fieldsOf({ ifRunning: replace })).toEqual(["ifRunning"]);
    expect(fieldsOf({ name: "a", ifRunning: "join" })).toEqual(["ifRunning"]);
    for (const name of ["a", "A-_9", "0", "x".repeat(64)]) {
      expect(await ask.start({ name, argv: ["true"] })).toMatchObject({ name });
    }
  });

  test("[P35] of twenty replacements at once one runs in the end, nothing of the others is left, and each call gets its own process", async () => {
    const name = newName();
    const command = "(setsid sleep 1000 &); sleep 1000 & echo up; wait";
    const calls = Array.from({ length: 20 }, (_, n) =>
      replaced({ name, command, argv: undefined, env: { WHO: `${name}.${n}.` } } as never),
    );
    const own = await Promise.all(calls);
    expect(new Set(own.map(({ id }) => id)).size).toBe(20);
    const [last, ...others] = await runningAs(name);
    expect(others).toEqual([]);
    if (last === undefined) throw new Error("none runs");
    expect(own.map(({ id }) => id)).toContain(last.id);
    await up(last);
    const who = whoIs(last.pid);
    const left = agent.left().map(whoIs);
    expect(left.length).toBeGreaterThanOrEqual(3);
    expect(new Set(left)).toEqual(new Set([who]));
    for (const { id } of own.filter(({ id }) => id !== last.id)) {
      expect(await ask.get(id)).toMatchObject({ state: "exited", name });
    }
    await ask.end(last.id);
    await until("none is left", () => agent.left().length === 0);
  });

  test("[P35] the replaced process has ended, however stubborn, before the next one starts", async () => {
    const name = newName();
    const running = await ask.start({ name, command: stubborn });
    await up(running);
    const two = await replaced({ name });
    const ended = await ask.get(running.id);
    expect(ended).toMatchObject({ state: "exited", signal: "SIGKILL", timedOut: false });
    expect(Date.parse(two.startedAt)).toBeGreaterThanOrEqual(Date.parse(ended.endedAt ?? ""));
    expect(Date.parse(ended.endedAt ?? "") - Date.parse(ended.startedAt)).toBeGreaterThan(1900);
    expect(two.state).toBe("running");
    // A call that does not replace is refused all the time.
    expect((await ask.post({ name, command: "true" })).status).toBe(409);
    await ask.end(two.id);
  });

  test("[P36] a program that cannot start leaves the running process as it is", async () => {
    const name = newName();
    const running = await ask.start({ name, argv: ["sleep", "1000"] });
    const noFolder = { name, command: "true", cwd: "/nowhere", ifRunning: replace };
    expect(await refusalOf(await ask.post(noFolder))).toMatchObject({ code: "bad_cwd" });
    const noProgram = await replaced({ name, argv: ["no-such-program"] });
    expect(noProgram).toMatchObject({ state: "exited", exitCode: 127, pid: null, name });
    expect(await runningAs(name)).toMatchObject([{ id: running.id, pid: running.pid }]);
    expect((await ask.post({ name, command: "true" })).status).toBe(409);
    await ask.end(running.id);
  });

  test("[P36] at the limit of processes a replacement gets the slot of the process that it replaces, and no other call does", async () => {
    const name = newName();
    const argv = ["sleep", "1000"];
    const running = await ask.start({ name, argv });
    const others = await Promise.all(
      Array.from({ length: limits.processesMax - 1 }, () => ask.start({ argv })),
    );
    const free = { name: newName(), argv, ifRunning: replace };
    let isOver = false;
    const crowd = Array.from({ length: 8 }, async () => {
      const statuses = new Set<number>();
      while (!isOver) statuses.add((await ask.post({ argv })).status);
      return [...statuses];
    });
    const [two, refused] = await Promise.all([replaced({ name }), ask.post(free)]);
    isOver = true;
    expect(await refusalOf(refused)).toMatchObject({ code: "too_many", status: 429 });
    expect(await Promise.all(crowd)).toEqual(crowd.map(() => [429]));
    expect((await ask.post({ argv })).status).toBe(429);
    expect((await ask.get(running.id)).state).toBe("exited");
    expect((await ask.get(two.id)).state).toBe("running");
    await Promise.all([two, ...others].map(({ id }) => ask.end(id)));
  });

  test("[P37] a call that leaves the queue starts nothing, and those behind it have their turn", async () => {
    const name = newName();
    await up(await ask.start({ name, command: stubborn }));
    const ahead = replaced({ name, command: stubborn, argv: undefined } as never);
    await agent.request("/v1/health");
    const abort = new AbortController();
    const call = { id: newId(), name, command: "echo left >> left", ifRunning: replace };
    const left = ask.post(call, { signal: abort.signal }).catch((error: Error) => error.name);
    for (let n = 0; n < 5; n += 1) await agent.request("/v1/health");
    const behind = replaced({ name });
    abort.abort();
    expect(await left).toBe("AbortError");
    expect((await ahead).state).toBe("running");
    const { id } = await behind;
    expect(await runningAs(name)).toMatchObject([{ id }]);
    expect(await isKnown(call.id)).toBe(false);
    expect((await agent.sh("cat left")).exitCode).not.toBe(0);
    await ask.end(id);
  });

  test("[P37] only so many calls wait in one queue, and the refusal names the limit", async () => {
    const name = newName();
    await up(await ask.start({ name, command: stubborn }));
    const call = { name, argv: ["sleep", "1000"], ifRunning: replace };
    const count = limits.processReplacersMax + 6;
    const answers = await Promise.all(Array.from({ length: count }, () => ask.post(call)));
    const refused = answers.filter(({ status }) => status === 429);
    expect(refused).toHaveLength(5);
    for (const answer of refused) {
      const facts = { code: "too_many", limit: limits.processReplacersMax };
      expect(await refusalOf(answer)).toMatchObject(facts);
    }
    const [last, ...others] = await runningAs(name);
    expect(others).toEqual([]);
    await ask.end(last?.id ?? "");
  });

  test("[P38] a replacement that is repeated with its id is the same one, in the queue and afterwards", async () => {
    const name = newName();
    await up(await ask.start({ name, command: stubborn }));
    const call = { id: newId(), name, command: "echo once >> once; sleep 1000" };
    const twice = [call, call, call].map((running) => ask.post({ ...running, ifRunning: replace }));
    const answers = await Promise.all(twice);
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 200, 201]);
    const pids = await Promise.all(answers.map(async (answer) => (await read(answer)).pid));
    expect(new Set(pids).size).toBe(1);
    await until("it wrote", async () => (await agent.sh("cat once")).stdout === "once\n");
    const next = await replaced({ name });
    // The process was replaced meanwhile, so the response says how it ended.
    const repeated = await ask.post({ ...call, ifRunning: replace });
    expect(repeated.status).toBe(200);
    expect(await read(repeated)).toMatchObject({ id: call.id, state: "exited" });
    expect(await runningAs(name)).toMatchObject([{ id: next.id }]);
    expect((await agent.sh("cat once")).stdout).toBe("once\n");
    await ask.end(next.id);
  });

  test("[P35] a process of a session replaces, and is replaced, as any other", async () => {
    const name = newName();
    const sessions = new Sessions(agent);
    const id = await sessions.make({ id: `of-${name}` });
    await sessions.exec(id, "stage=test; cd /tmp");
    const post = (call: object) =>
      sessions.request(`/${id}/processes`, "POST", { id: newId(), name, ...call });
    const running = await ask.start({ name, argv: ["sleep", "1000"] });
    expect((await post({ command: "true" })).status).toBe(409);
    const bad = await post({ command: "true", cwd: "/nowhere", ifRunning: replace });
    expect((await refusalOf(bad)).code).toBe("bad_cwd");
    expect((await ask.get(running.id)).state).toBe("running");
    const command = "echo up $stage; sleep 1000";
    const two = await read(await post({ command, ifRunning: replace }));
    await up(two);
    expect((await ask.bytes(two.id, "stdout")).toString()).toBe("up test\n");
    expect((await ask.get(running.id)).state).toBe("exited");
    const three = await replaced({ name });
    expect(await ask.get(two.id)).toMatchObject({ state: "exited", sessionId: id, name });
    expect(await runningAs(name)).toMatchObject([{ id: three.id }]);
    await ask.end(three.id);
  });

  test("[P35] a process that ends with its lease no longer counts when one that does not replaces it", async () => {
    const name = newName();
    const { running } = await health();
    const call = { name, argv: ["sleep", "1000"] };
    const replacedOne = await read(await ask.post({ ...call, endsWithLease: true }, fenced(fence)));
    expect((await health()).running).toBe(running + 1);
    const two = await read(await ask.post({ ...call, ifRunning: replace }, fenced(fence)));
    await until("it no longer counts", async () => (await health()).running === running);
    expect(await ask.get(replacedOne.id)).toMatchObject({ state: "exited", signal: "SIGTERM" });
    await drain();
    expect((await ask.get(two.id)).state).toBe("running");
    await agent.request(`/v1/processes/${two.id}`, { method: "DELETE", ...fenced(fence) });
  });

  test("[P37] a call that is queued when a fence rises above it starts nothing", async () => {
    const name = newName();
    await up(await read(await ask.post({ name, command: stubborn }, fenced(fence))));
    const calls = Array.from({ length: 3 }, () => ({
      ...{ id: newId(), name, command: "echo lost >> lost", ifRunning: replace },
    }));
    const answers = calls.map((call) => ask.post(call, fenced(fence)));
    await until("the first call runs", async () => (await health()).running > 0);
    await drain();
    for (const answer of await Promise.all(answers)) {
      expect(await refusalOf(answer)).toMatchObject({ code: "stale_fence", status: 409 });
    }
    expect(await ask.list({ name, state: "running" })).toEqual([]);
    for (const { id } of calls) expect(await isKnown(id)).toBe(false);
    expect(existsSync(`${agent.workspace}/lost`)).toBe(false);
  });
});

test("[P37] an agent that ends refuses the queued calls: nothing starts any more", async () => {
  const agent = await Agent.start();
  const ask = new Asker(agent);
  const running = await ask.start({ name: "web", command: stubborn });
  await ask.wait(running.id, { for: "log:up" });
  const call = { name: "web", command: stubborn, ifRunning: replace };
  const calls = Array.from({ length: 5 }, () => ask.post(call).catch(() => undefined));
  await until("the first call runs", async () => {
    const { running } = (await (await agent.request("/v1/health")).json()) as AgentHealth;
    return running > 0;
  });
  // Stopping asserts that nothing is left.
  await agent.stop();
  for (const answer of await Promise.all(calls)) expect(answer?.ok ?? false).toBe(false);
});

test.runIf(canFreeze)(
  "[P37] a process that cannot be ended keeps its name, and a call to replace it fails in time",
  async () => {
    const agent = await Agent.start();
    const ask = new Asker(agent);
    const running = await ask.start({ name: "web", argv: ["sleep", "1000"] });
    const hold = freeze(String(running.pid));
    const began = performance.now();
    const call = { name: "web", argv: ["sleep", "1000"], ifRunning: replace };
    try {
      const refused = await refusalOf(await ask.post(call));
      const facts = { code: "unavailable", name: "web", retryable: true };
      expect(refused).toMatchObject({ status: 503, ...facts });
      expect(performance.now() - began).toBeGreaterThan(limits.processReplaceMs - 1000);
      expect((await ask.post({ ...call, ifRunning: "refuse" })).status).toBe(409);
    } finally {
      hold.thaw();
    }
    await ask.exited(running.id);
    await until("the group is gone", hold.isRemoved);
    expect((await ask.post(call)).status).toBe(201);
    await agent.stop();
  },
);

function whoIs(pid: number | null): string | undefined {
  return environmentOf(pid ?? 0).find((entry) => entry.startsWith("WHO="));
}
