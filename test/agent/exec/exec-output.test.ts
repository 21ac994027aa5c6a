import { describe, expect, test } from "vitest";
import { Output, OutputBudget } from "../../../container/agent/exec/output.ts";
import type { ExecResult } from "../../../src/protocol/exec.ts";
import { limits } from "../../../src/protocol/limits.ts";
import { Agent } from "../agent.ts";
import { until } from "../until.ts";

const MiB = 1024 * 1024;
const own = limits.execOutputOwnBytes;
const bytes = (length: number) => new Uint8Array(length).fill(120);

describe("the output of all commands together", () => {
  test("[X30] beyond its first part a command keeps only what the others leave it, and gives it back", () => {
    const room = new OutputBudget(1000);
    const [one, two, three] = [0, 1, 2].map(() => new Output(10 * MiB, room)) as [
      Output,
      Output,
      Output,
    ];
    one.take("stdout", bytes(own));
    expect(room.left).toBe(1000);
    one.take("stderr", bytes(900));
    expect([room.left, one.truncated]).toEqual([100, false]);
    two.take("stdout", bytes(own + 300));
    expect([room.left, two.truncated]).toEqual([0, true]);
    expect(two.stdout.text("utf8").length).toBe(own + 100);
    // Its first part is there for each, however little is left.
    three.take("stdout", bytes(own));
    expect(three.truncated).toBe(false);
    expect(three.stdout.text("utf8").length).toBe(own);
    one.release();
    one.release();
    expect(room.left).toBe(900);
    // No hole: what comes after something was dropped is dropped too.
    two.take("stdout", bytes(1));
    expect(two.stdout.text("utf8").length).toBe(own + 100);
    for (const output of [two, three]) output.release();
    expect(room.left).toBe(1000);
    one.take("stdout", bytes(10));
    expect([room.left, one.stdout.text("utf8")]).toEqual([1000, ""]);
  });

  test("[X30] many commands that write much cost no more than the bound, are all answered, and leave it whole", async () => {
    const agent = await Agent.start();
    const [count, each] = [20, limits.execOutputMaxBytes];
    const before = agent.memoryKiB();
    const command = (n: number) =>
      `head -c ${each} /dev/zero | tr '\\0' x; touch wrote.${n}; until [ -e go.${n} ]; do sleep 0.1; done`;
    const running = Array.from({ length: count }, (_, n) =>
      agent.post({ command: command(n), maxOutputBytes: each, timeoutMs: 600_000 }),
    );
    for (const one of running) one.catch(() => {});
    await until(
      "all have written",
      async () => (await agent.sh("ls wrote.* 2>/dev/null | wc -l")).stdout === `${count}\n`,
      60_000,
    );
    const held = (agent.memoryKiB() - before) * 1024;
    expect(held).toBeGreaterThan(limits.execOutputAllBytesMax / 2);
    expect(held).toBeLessThan(limits.execOutputAllBytesMax * 2);
    let kept = 0;
    let truncated = 0;
    for (const [n, one] of running.entries()) {
      await agent.sh(`touch go.${n}`);
      const result = JSON.parse((await (await one).text()).trim()) as ExecResult;
      expect(result.exitCode).toBe(0);
      expect(result.truncated).toBe(result.stdout.length < each);
      expect(result.stdout.length).toBeGreaterThanOrEqual(own);
      kept += result.stdout.length;
      truncated += Number(result.truncated);
    }
    expect(truncated).toBeGreaterThan(0);
    expect(kept).toBeGreaterThan(limits.execOutputAllBytesMax - MiB);
    expect(kept).toBeLessThanOrEqual(limits.execOutputAllBytesMax + count * own);
    // All of it was given back, also by one that is cut off.
    await agent.post({ command: `head -c ${each} /dev/zero; sleep 100`, timeoutMs: 500 });
    const again = await agent.sh(`head -c ${each} /dev/zero | tr '\\0' x`, {
      maxOutputBytes: each,
    });
    expect([again.stdout.length, again.truncated]).toEqual([each, false]);
    await agent.stop();
  });
});
