import { readdirSync, readlinkSync } from "node:fs";
import { describe, expect, test } from "vitest";
import type { AgentWork } from "../../../src/protocol/internal/agent.ts";
import { until } from "../../until.ts";
import { Agent, fenced, kinds } from "../agent.ts";
import { Asker, newId, refusalOf } from "./processes.ts";

const MiB = 1024 * 1024;

describe.each(kinds)("many processes, trees held by %s", (tree) => {
  const agent = Agent.forBlock({ tree });
  const ask = new Asker(agent);

  test("[L12] the newest 50 exited processes are remembered, and the folder of logs holds no file", async () => {
    const ids: string[] = [];
    for (let n = 0; n < 60; n += 1) {
      const { id } = await ask.sh(`echo ${n}`);
      await ask.exited(id);
      ids.push(id);
    }
    expect((await ask.list()).map(({ id }) => id)).toEqual(ids.slice(10).reverse());
    expect((await ask.bytes(ids[10] ?? "", "stdout")).toString()).toBe("10\n");
    expect((await agent.request(`/v1/processes/${ids[9]}`)).status).toBe(404);
    expect(readdirSync(agent.run).filter((name) => name !== "berth")).toEqual([]);
    expect(logsOf(agent.pid)).toBe(50);
    for (const id of ids.slice(10)) await ask.end(id);
    expect(await ask.list()).toEqual([]);
    expect(logsOf(agent.pid)).toBe(0);
  });

  test("[P21] descriptors and memory are back where they were after processes of every kind", async () => {
    const kindsOfWork = [
      async () => ask.exited((await ask.sh("head -c 20M /dev/zero")).id),
      async () => ask.exited((await ask.start({ argv: ["no-such-program"] })).id),
      async () => ask.end((await ask.sh("setsid sleep 1000 & sleep 1000")).id),
      async () => {
        const { id } = await ask.sh("cat", { onFull: "block", logBytesMax: 65_536 });
        const cut = new AbortController();
        const answer = await ask.logs(id, { follow: 1 }, { signal: cut.signal });
        await ask.written(id, new Uint8Array(2 * MiB), { eof: 1 });
        cut.abort();
        await answer.text().catch(() => {});
        // It continues the reader that was cut off, so that nobody else must be waited for.
        await (await ask.logs(id, { follow: 1 })).text();
      },
      async () => expect((await ask.post({ command: "true", cwd: "/nope" })).status).toBe(400),
    ];
    const round = async () => {
      await Promise.all(kindsOfWork.map((run) => run()));
      for (const { id } of await ask.list()) await ask.end(id);
      for (const { id } of await ask.list()) await ask.end(id);
    };
    for (let n = 0; n < 5; n += 1) await round();
    const [descriptors, memory] = [agent.descriptors(), agent.memoryKiB()];
    for (let n = 0; n < 20; n += 1) await round();
    expect(await ask.list()).toEqual([]);
    await until("descriptors are back", () => agent.descriptors() <= descriptors);
    await until("the dead are collected", () => agent.zombies() === 0);
    expect(agent.left()).toEqual([]);
    await agent.keepsLessThan(48 * 1024, memory);
  });

  test("[P22] a lease that is lost ends no process that runs, and no later call of it starts, writes, signals or ends one", async () => {
    const answer = await ask.post({ id: newId(), command: "cat" }, fenced(5));
    const { id } = (await answer.json()) as { id: string };
    expect(await agent.raiseFence(6, true)).toMatchObject({ fence: 6, left: 0 });
    expect((await ask.get(id)).state).toBe("running");
    const path = `/v1/processes/${id}`;
    const late = await Promise.all([
      ask.post({ command: "touch late" }, fenced(5)),
      agent.request(`${path}/stdin`, { method: "POST", body: "late", ...fenced(5) }),
      agent.request(`${path}/signal`, { method: "POST", body: "{}", ...fenced(5) }),
      agent.request(path, { method: "DELETE", ...fenced(5) }),
    ]);
    for (const response of late) {
      expect(await refusalOf(response)).toMatchObject({
        status: 409,
        code: "stale_fence",
        fence: 6,
      });
    }
    expect(await ask.get(id)).toMatchObject({ state: "running", stdin: { offset: 0 } });
    expect((await agent.request("/v1/exec", fenced(6))).status).toBe(405);
    const ended = await agent.request(path, { method: "DELETE", ...fenced(6) });
    expect(((await ended.json()) as { state: string }).state).toBe("exited");
  });

  test("[P22] a process that is being started when the lease is lost has ended before the drain is confirmed, or runs", async () => {
    for (let n = 0; n < 10; n += 1) {
      const fence = 10 + n;
      const id = newId();
      const starting = ask.post({ id, command: "sleep 1000" }, fenced(fence));
      const { left } = await agent.raiseFence(fence + 1, true);
      expect(left).toBe(0);
      const { status } = await starting;
      // Whichever came first; but no process starts after the confirmation.
      const here = (await ask.list({ state: "running" })).map((process) => process.id);
      expect([201, 409, 502]).toContain(status);
      expect(here).toEqual(status === 201 ? [id] : []);
      if (status === 201) {
        await agent.request(`/v1/processes/${id}`, { method: "DELETE", ...fenced(fence + 1) });
      }
    }
  });

  test("[P23] the agent reports what runs and what has ended", async () => {
    const own = await Agent.start({ tree });
    const askOwn = new Asker(own);
    const work = async () => (await own.request("/v1/work")).json() as Promise<AgentWork>;
    const { id } = await askOwn.sh("sleep 1000");
    const late = await askOwn.sh("sleep 1000", { timeoutMs: 100 });
    const short = await askOwn.sh("exit 3");
    await askOwn.exited(short.id);
    await askOwn.exited(late.id);
    expect(await work()).toMatchObject({ processes: 1, idleMs: 0 });
    await askOwn.end(id);
    const { processes, idleMs, endings } = await work();
    expect(processes).toBe(0);
    expect(idleMs).toBeGreaterThan(0);
    expect(endings.find((process) => process.id === short.id)).toMatchObject({
      ...{ kind: "process", exitCode: 3, reason: "exited" },
    });
    expect(endings.find((process) => process.id === late.id)?.reason).toBe("timed_out");
    expect(endings.find((process) => process.id === id)?.reason).toBe("ended");
    expect(endings.length).toBe(3);
    // An agent that ends also ends what runs, whatever signals it ignores.
    await askOwn.sh("trap '' TERM; while :; do sleep 1000; done");
    await own.stop();
  });
});

describe("too many processes", () => {
  // A subreaper for each would cost the machine gigabytes.
  test.runIf(kinds.includes("cgroup"))(
    "[P21] at most 256 run at once; the refusal names the limit, and one that has ended makes room",
    async () => {
      const agent = await Agent.start({ tree: "cgroup" });
      const ask = new Asker(agent);
      const started = await Promise.all(Array.from({ length: 256 }, () => ask.sh("sleep 1000")));
      const refused = await refusalOf(await ask.post({ command: "true" }));
      expect(refused).toMatchObject({ status: 429, code: "too_many", limit: 256 });
      await ask.end(started[0]?.id ?? "");
      await ask.exited((await ask.sh("true")).id);
      await agent.stop();
    },
  );
});

/** Open files without a name. */
function logsOf(pid: number): number {
  return readdirSync(`/proc/${pid}/fd`).filter((fd) => {
    try {
      return readlinkSync(`/proc/${pid}/fd/${fd}`).endsWith(" (deleted)");
    } catch {
      return false;
    }
  }).length;
}
