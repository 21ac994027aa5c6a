import { describe, expect, test } from "vitest";
import { Output, OutputBudget } from "../../../container/agent/exec/output.ts";
import type { ExecResult } from "../../../src/protocol/exec.ts";
import { limits } from "../../../src/protocol/limits.ts";
import { until } from "../../until.ts";
import { Agent } from "../agent.ts";

const MiB = 1024 * 1024;
const own = limits.execOutputOwnBytes;
const bytes = (length: number) => new Uint8Array(length).fill(120);

describe("the output of all commands together", () => {
  test("[X30] beyond its first bytes a command retains only what the others leave, and releases it at the end", () => {
    const budget = new OutputBudget(1000);
    const newOutput = () => new Output(10 * MiB, budget);
    const [first, second, third] = [newOutput(), newOutput(), newOutput()];
    first.take("stdout", bytes(own));
    expect(budget.left).toBe(1000);
    first.take("stderr", bytes(900));
    expect([budget.left, first.truncated]).toEqual([100, false]);
    second.take("stdout", bytes(own + 300));
    expect([budget.left, second.truncated]).toEqual([0, true]);
    expect(second.stdout.text("utf8").length).toBe(own + 100);
    // The first bytes are there for each command, however little is left.
    third.take("stdout", bytes(own));
    expect(third.truncated).toBe(false);
    expect(third.stdout.text("utf8").length).toBe(own);
    first.release();
    first.release();
    expect(budget.left).toBe(900);
    // No gap: after a drop, all that follows is dropped too.
    second.take("stdout", bytes(1));
    expect(second.stdout.text("utf8").length).toBe(own + 100);
    for (const output of [second, third]) output.release();
    expect(budget.left).toBe(1000);
    first.take("stdout", bytes(10));
    expect([budget.left, first.stdout.text("utf8")]).toEqual([1000, ""]);
  });

  test("[X30] many commands that write much use no more than the budget, all get a result, and release it", async () => {
    await using agent = await Agent.start();
    const [count, each] = [20, limits.execOutputMaxBytes];
    const before = agent.memoryKiB();
    const command = (n: number) =>
      `head -c ${each} /dev/zero | tr '\\0' x; touch wrote.${n}; until [ -e go.${n} ]; do sleep 0.1; done`;
    const running = Array.from({ length: count }, (_, n) =>
      agent.post({ command: command(n), maxOutputBytes: each, timeoutMs: 600_000 }),
    );
    for (const response of running) response.catch(() => {});
    const written = async () => (await agent.sh("ls wrote.* 2>/dev/null | wc -l")).stdout;
    await until("all have written", async () => (await written()) === `${count}\n`);
    const held = (agent.memoryKiB() - before) * 1024;
    expect(held).toBeGreaterThan(limits.execOutputAllBytesMax / 2);
    expect(held).toBeLessThan(limits.execOutputAllBytesMax * 3);
    let kept = 0;
    let truncated = 0;
    for (const [n, response] of running.entries()) {
      await agent.sh(`touch go.${n}`);
      const result = JSON.parse((await (await response).text()).trim()) as ExecResult;
      expect(result.exitCode).toBe(0);
      expect(result.truncated).toBe(result.stdout.length < each);
      expect(result.stdout.length).toBeGreaterThanOrEqual(own);
      kept += result.stdout.length;
      truncated += Number(result.truncated);
    }
    expect(truncated).toBeGreaterThan(0);
    expect(kept).toBeGreaterThan(limits.execOutputAllBytesMax - MiB);
    expect(kept).toBeLessThanOrEqual(limits.execOutputAllBytesMax + count * own);
    // All of it was released, even by a command that timed out.
    await agent.post({ command: `head -c ${each} /dev/zero; sleep 100`, timeoutMs: 500 });
    const large = { maxOutputBytes: each };
    const next = await agent.sh(`head -c ${each} /dev/zero | tr '\\0' x`, large);
    expect([next.stdout.length, next.truncated]).toEqual([each, false]);
  });
});
