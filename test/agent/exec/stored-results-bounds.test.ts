import { afterEach, describe, expect, test, vi } from "vitest";
import { StoredResults } from "../../../container/agent/server/stored-results.ts";
import { limits } from "../../../src/protocol/limits.ts";

const result = (execId: string, stdout = "") => ({
  ...{ execId, exitCode: 3, signal: null, timedOut: false, stdout, stderr: "", truncated: false },
  ...{ leftovers: 0, durationMs: 1, incarnation: "incarnation" },
});
const sizeOf = (execId: string, stdout: string) =>
  Buffer.byteLength(JSON.stringify(result(execId, stdout)));

afterEach(() => vi.useRealTimers());

describe("the bounds of stored results", () => {
  test("[K3] all results together stay below the bound, whatever the order of their ends", async () => {
    const bound = 4 * sizeOf("a0", "x".repeat(100));
    const stored = new StoredResults(bound);
    const ends: (() => void)[] = [];
    const results = Array.from({ length: 9 }, (_, n) =>
      stored.run(`a${n}`, async () => {
        await new Promise<void>((resolve) => ends.push(resolve));
        return result(`a${n}`, "x".repeat(100));
      }),
    );
    // The last to start ends first, so it is the oldest result.
    for (const end of ends.toReversed()) {
      end();
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect(await Promise.all(results)).toHaveLength(9);
    const found = await Promise.allSettled(results.map((_, n) => stored.find(`a${n}`)));
    const has = found.map(({ status }) => status === "fulfilled");
    expect(has).toEqual([true, true, true, true, false, false, false, false, false]);
  });

  test("[K3] a result that is larger than the bound reaches its waiters, and leaves its exit code", async () => {
    const stored = new StoredResults(1000);
    const text = "x".repeat(2000);
    const bytes = await stored.run("big", async () => result("big", text));
    expect(Buffer.from(bytes).toString()).toContain(text);
    const evicted = { code: "result_gone", facts: { exitCode: 3 } };
    await expect(stored.find("big")).rejects.toMatchObject(evicted);
    await stored.run("small", async () => result("small"));
    expect(await stored.find("small")).toBeDefined();
  });

  test("[K4] while all ids are young, the next call is refused; ten minutes later it replaces the oldest", async () => {
    vi.useFakeTimers({ toFake: ["performance"] });
    const stored = new StoredResults(limits.storedResultsBytesMax, 3);
    let runs = 0;
    const run = (id: string) =>
      stored.run(id, async () => {
        runs += 1;
        return result(id);
      });
    for (const id of ["a", "b", "c"]) await run(id);
    expect(() => run("d")).toThrow(expect.objectContaining({ code: "too_many" }));
    // Known ids still get their result.
    await run("a");
    expect(runs).toBe(3);
    vi.advanceTimersByTime(limits.keyMs - 1);
    expect(() => run("d")).toThrow(expect.objectContaining({ code: "too_many" }));
    vi.advanceTimersByTime(1);
    await run("d");
    expect(runs).toBe(4);
    expect(stored.find("a")).toBeUndefined();
    expect(await stored.find("b")).toBeDefined();
  });

  test("[K4] a running command is never forgotten", async () => {
    vi.useFakeTimers({ toFake: ["performance"] });
    const stored = new StoredResults(limits.storedResultsBytesMax, 2);
    const { promise: ended, resolve: end } = Promise.withResolvers<void>();
    const long = stored.run("long", () => ended.then(() => result("long")));
    for (const id of ["a", "b", "c"]) {
      await stored.run(id, async () => result(id));
      vi.advanceTimersByTime(limits.keyMs);
    }
    expect(stored.find("a")).toBeUndefined();
    expect(stored.find("long")).toBe(long);
    end();
    expect(await stored.find("long")).toBe(await long);
  });

  test("[K5] a start that throws leaves nothing", async () => {
    const stored = new StoredResults();
    const refuse = () => {
      throw new Error("too many");
    };
    expect(() => stored.run("one", refuse)).toThrow("too many");
    expect(stored.find("one")).toBeUndefined();
    await stored.run("one", async () => result("one"));
    expect(await stored.find("one")).toBeDefined();
  });
});
