import type { AddressInfo } from "node:net";
import { createServer } from "node:net";
import { describe, expect, test } from "vitest";
import { waitedSchema, waitQuerySchema } from "../../../src/protocol/process.ts";
import { until } from "../../until.ts";
import { Agent } from "../agent.ts";
import { Asker, refusalOf } from "./processes.ts";

describe("waiting for a process", () => {
  const agent = Agent.forBlock();
  const ask = new Asker(agent);

  test("[L17] the time-out of a waiter does not affect the process", async () => {
    const { id } = await ask.sh("sleep 1000");
    const answers = await Promise.all([
      ask.wait(id, { timeoutMs: 0 }),
      ask.wait(id, { timeoutMs: 200 }),
      ask.wait(id, { for: "log:never", timeoutMs: 200 }),
      ask.wait(id, { for: "port:1", timeoutMs: 200 }),
    ]);
    for (const { met, process } of answers) {
      expect({ met, state: process.state }).toEqual({ met: false, state: "running" });
    }
    expect(waitedSchema.parse(answers[0])).toEqual(answers[0]);
    await ask.end(id);
  });

  test("[L17] a waiter that disconnects changes nothing, and others still learn of the exit", async () => {
    const { id } = await ask.sh("read go; exit 4");
    const abort = new AbortController();
    const path = `/v1/processes/${id}/wait?timeoutMs=3600000`;
    const left = agent.request(path, { signal: abort.signal }).catch((error: Error) => error.name);
    const others = Array.from({ length: 20 }, () => ask.wait(id));
    abort.abort();
    expect(await left).toBe("AbortError");
    expect((await ask.get(id)).state).toBe("running");
    await ask.written(id, "go\n");
    for (const { met, process } of await Promise.all(others)) {
      expect({ met, exitCode: process.exitCode }).toEqual({ met: true, exitCode: 4 });
    }
    // Also a later waiter.
    expect((await ask.wait(id, { timeoutMs: 0 })).met).toBe(true);
  });

  test("[P15] a response that takes long begins with spaces, and is still valid JSON", async () => {
    const { id } = await ask.sh("sleep 1000");
    const answer = await agent.request(`/v1/processes/${id}/wait?timeoutMs=3000`);
    const text = await answer.text();
    expect(text.startsWith(" ")).toBe(true);
    expect(waitedSchema.parse(JSON.parse(text))).toMatchObject({ met: false });
    await ask.end(id);
  });

  test("[P16] a text is found in either stream, in what was written before, and across pieces", async () => {
    const { id } = await ask.sh(
      "printf 'before: re'; printf early >&2; while read word; do printf $word; done",
    );
    expect((await ask.wait(id, { for: "log:early" })).met).toBe(true);
    const across = ask.wait(id, { for: "log:ready ä!" });
    const twice = ask.wait(id, { for: "log:adyadyady" });
    for (const word of ["ady", "\\\\040", "\\\\303", "\\\\244", "!", "adyadyady"]) {
      const { end } = (await ask.get(id)).log;
      await ask.written(id, `${word}\n`);
      await until("it was printed", async () => (await ask.get(id)).log.end > end);
    }
    expect((await across).met).toBe(true);
    expect((await twice).met).toBe(true);
    // Characters are literal, and streams do not mix.
    expect((await ask.wait(id, { for: "log:.", timeoutMs: 100 })).met).toBe(false);
    expect((await ask.wait(id, { for: "log:reearly", timeoutMs: 100 })).met).toBe(false);
    await ask.end(id);
  });

  test("[P16] a text is found while a log is written at full speed, however little is stored", async () => {
    const { id } = await ask.sh("read go; seq 1 3000000; echo needle; seq 1 3000000", {
      logBytesMax: 65_536,
    });
    const found = ask.wait(id, { for: "log:needle" });
    const missed = ask.wait(id, { for: "log:no such text" });
    await until("both wait", async () => (await ask.wait(id, { timeoutMs: 0 })).met === false);
    await ask.written(id, "go\n");
    expect((await found).met).toBe(true);
    expect(await missed).toMatchObject({ met: false, process: { state: "exited", exitCode: 0 } });
    expect((await ask.wait(id, { for: "log:3000000\n" })).met).toBe(true);
    expect((await ask.wait(id, { for: "log:needle" })).met).toBe(false);
  });

  test("[P17] waiting for a port ends once a server accepts connections, but not if it drops them at once", async () => {
    const { id } = await ask.sh("sleep 1000");
    const dropping = createServer((socket) => socket.destroy());
    await new Promise<void>((resolve) => dropping.listen(0, "127.0.0.1", resolve));
    const { port } = dropping.address() as AddressInfo;
    expect((await ask.wait(id, { for: `port:${port}`, timeoutMs: 500 })).met).toBe(false);
    await new Promise((resolve) => dropping.close(resolve));
    const waiting = ask.wait(id, { for: `port:${port}` });
    const staying = createServer(() => {});
    await new Promise<void>((resolve) => staying.listen(port, "127.0.0.1", resolve));
    expect((await waiting).met).toBe(true);
    await new Promise((resolve) => staying.close(resolve));
    await ask.end(id);
  });

  test("[P17] waiting for a port ends at once when the process has exited", async () => {
    const { id } = await ask.sh("read go; exit 1");
    const waiting = ask.wait(id, { for: "port:1", timeoutMs: 50_000 });
    await ask.written(id, "go\n");
    expect(await waiting).toMatchObject({ met: false, process: { exitCode: 1 } });
    expect(await ask.wait(id, { for: "port:1" })).toMatchObject({ met: false });
  });

  test("[P15] what is not of the form of a wait is refused by its field", () => {
    const cases: [Record<string, string>, string][] = [
      [{ for: "forever" }, "for"],
      [{ for: "log:" }, "for"],
      [{ for: `log:${"x".repeat(1025)}` }, "for"],
      [{ for: "port:0" }, "for"],
      [{ for: "port:65536" }, "for"],
      [{ for: "port:8080x" }, "for"],
      [{ timeoutMs: "-1" }, "timeoutMs"],
      [{ timeoutMs: "3600001" }, "timeoutMs"],
      [{ timeoutMs: "soon" }, "timeoutMs"],
      [{ other: "1" }, "other"],
    ];
    for (const [query, field] of cases) {
      const [issue] = waitQuerySchema.safeParse(query).error?.issues ?? [];
      expect(issue?.code === "unrecognized_keys" ? issue.keys[0] : issue?.path[0]).toBe(field);
    }
  });

  test("[P15] the number of waiters is limited; the refusal names the limit, and a waiter that leaves frees a slot", async () => {
    const { id } = await ask.sh("sleep 1000");
    const abort = new AbortController();
    const path = `/v1/processes/${id}/wait?timeoutMs=3600000`;
    const waiting = Array.from({ length: 300 }, () =>
      agent.request(path, { signal: abort.signal }),
    );
    const answers = Promise.allSettled(waiting);
    const refused = await refusalOf(await Promise.race(waiting));
    expect(refused).toMatchObject({ status: 429, code: "too_many", limit: 256 });
    abort.abort();
    await answers;
    await until("there is room", async () => {
      const answer = await agent.request(`/v1/processes/${id}/wait?timeoutMs=0`);
      await answer.text();
      return answer.status === 200;
    });
    await ask.end(id);
  });

  test("[P29] a search through a long log ends with its waiter's time, and delays nobody else", async () => {
    const { id } = await ask.sh("head -c 600000000 /dev/zero; sleep 1000", {
      logBytesMax: 1024 * 1024 * 1024,
    });
    await until("it has written", async () => (await ask.get(id)).log.end === 600_000_000);
    const begun = agent.cpuSeconds();
    const searched = await ask.wait(id, { for: "log:never", timeoutMs: 1_000 });
    expect(searched.met).toBe(false);
    const oneSearch = agent.cpuSeconds() - begun;
    // A hundred searches that were given up at once must not run one after the other.
    const many = Array.from({ length: 100 }, () =>
      ask.wait(id, { for: "log:never", timeoutMs: 1 }),
    );
    for (const { met } of await Promise.all(many)) expect(met).toBe(false);
    const manySearches = agent.cpuSeconds() - begun - oneSearch;
    console.log(JSON.stringify({ oneSearch, manySearches }));
    expect(manySearches).toBeLessThan(20 * oneSearch);
    await ask.end(id);
  });
});
