/** A sandbox is not idle while a caller reads a file or an archive from it slowly. */
import { describe, expect, test } from "vitest";
import { Agent } from "../agent.ts";
import { until } from "../until.ts";

describe("a transfer", () => {
  const reads = [
    ["a large file", "/v1/files?path=large"],
    ["an archive", "/v1/archive?path=."],
  ] as const;
  test.each(reads)("[S16] %s in transfer keeps the sandbox from being idle", async (_, path) => {
    const agent = await Agent.start({ tree: "subreaper" });
    await agent.sh("head -c 67108864 /dev/urandom > large");
    const idleMs = async () => {
      return ((await (await agent.request("/v1/work")).json()) as { idleMs: number }).idleMs;
    };
    expect(await idleMs()).toBeGreaterThan(0);
    const reader = new AbortController();
    const answer = await agent.request(path, { signal: reader.signal });
    const body = answer.body?.getReader();
    expect((await body?.read())?.done).toBe(false);
    expect(await idleMs()).toBe(0);
    reader.abort();
    await until("the transfer has ended", async () => (await idleMs()) > 0);
    await agent.stop();
  });
});
