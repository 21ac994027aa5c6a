import { afterEach, describe, expect, test, vi } from "vitest";
import { StoredAnswers } from "../../../container/agent/server/stored-answers.ts";
import { limits } from "../../../src/protocol/limits.ts";

const result = (execId: string, stdout = "") => ({
  ...{ execId, exitCode: 3, signal: null, timedOut: false, stdout, stderr: "", truncated: false },
  ...{ leftovers: 0, durationMs: 1, incarnation: "life" },
});
const sizeOf = (execId: string, stdout: string) =>
  Buffer.byteLength(JSON.stringify(result(execId, stdout)));

afterEach(() => vi.useRealTimers());

describe("the bounds of kept answers", () => {
  test("[K3] all answers together stay below the bound, whatever the order of their ends", async () => {
    const bound = 4 * sizeOf("a0", "x".repeat(100));
    const kept = new StoredAnswers(bound);
    const ends: (() => void)[] = [];
    const answers = Array.from({ length: 9 }, (_, at) =>
      kept.run(`a${at}`, async () => {
        await new Promise<void>((resolve) => ends.push(resolve));
        return result(`a${at}`, "x".repeat(100));
      }),
    );
    // The last to begin ends first, so it is the oldest answer.
    for (const end of ends.toReversed()) {
      end();
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect(await Promise.all(answers)).toHaveLength(9);
    const has = await Promise.all(
      answers.map((_, at) =>
        kept.find(`a${at}`)?.then(
          () => true,
          () => false,
        ),
      ),
    );
    expect(has).toEqual([true, true, true, true, false, false, false, false, false]);
  });

  test("[K3] an answer that is larger than the bound reaches who waits for it, and leaves its exit code", async () => {
    const kept = new StoredAnswers(1000);
    const text = "x".repeat(2000);
    const bytes = await kept.run("big", async () => result("big", text));
    expect(Buffer.from(bytes).toString()).toContain(text);
    await expect(kept.find("big")).rejects.toMatchObject({
      code: "result_gone",
      facts: { exitCode: 3 },
    });
    await kept.run("small", async () => result("small"));
    expect(await kept.find("small")).toBeDefined();
  });

  test("[K4] where all ids are young the next call is refused unrun; ten minutes later the oldest gives way", async () => {
    vi.useFakeTimers({ toFake: ["performance"] });
    const kept = new StoredAnswers(limits.keptAnswersBytesMax, 3);
    let runs = 0;
    const run = (id: string) =>
      kept.run(id, async () => {
        runs += 1;
        return result(id);
      });
    for (const id of ["a", "b", "c"]) await run(id);
    expect(() => run("d")).toThrow(expect.objectContaining({ code: "too_many" }));
    // Those that are known are answered still.
    await run("a");
    expect(runs).toBe(3);
    vi.advanceTimersByTime(limits.keyMs - 1);
    expect(() => run("d")).toThrow(expect.objectContaining({ code: "too_many" }));
    vi.advanceTimersByTime(1);
    await run("d");
    expect(runs).toBe(4);
    expect(kept.find("a")).toBeUndefined();
    expect(await kept.find("b")).toBeDefined();
  });

  test("[K4] what still runs is never forgotten", async () => {
    vi.useFakeTimers({ toFake: ["performance"] });
    const kept = new StoredAnswers(limits.keptAnswersBytesMax, 2);
    let end = () => {};
    const long = kept.run("long", async () => {
      await new Promise<void>((resolve) => {
        end = resolve;
      });
      return result("long");
    });
    for (const id of ["a", "b", "c"]) {
      await kept.run(id, async () => result(id));
      vi.advanceTimersByTime(limits.keyMs);
    }
    expect(kept.find("a")).toBeUndefined();
    expect(kept.find("long")).toBe(long);
    end();
    expect(await kept.find("long")).toBe(await long);
  });

  test("[K5] a start that throws has left nothing", async () => {
    const kept = new StoredAnswers();
    const refuse = () => {
      throw new Error("too many");
    };
    expect(() => kept.run("one", refuse)).toThrow("too many");
    expect(kept.find("one")).toBeUndefined();
    await kept.run("one", async () => result("one"));
    expect(await kept.find("one")).toBeDefined();
  });
});
