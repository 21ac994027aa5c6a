/** A sandbox is not idle while a caller reads a file or an archive from it slowly. */
import { describe, expect, test } from "vitest";
import { until } from "../../until.ts";
import { Agent } from "../agent.ts";

describe("a transfer", () => {
  test.each([
    ["a large file", "/v1/files?path=large"],
    ["an archive", "/v1/archive?path=."],
  ])("[S16] %s in transfer keeps the sandbox from being idle", async (_, path) => {
    await using agent = await Agent.start({ tree: "subreaper" });
    await agent.sh("head -c 67108864 /dev/urandom > large");
    const idleMs = async () => (await agent.work()).idleMs;
    expect(await idleMs()).toBeGreaterThan(0);
    const reader = new AbortController();
    const answer = await agent.request(path, { signal: reader.signal });
    const body = answer.body?.getReader();
    expect((await body?.read())?.done).toBe(false);
    expect(await idleMs()).toBe(0);
    reader.abort();
    await until("the transfer has ended", async () => (await idleMs()) > 0);
  });
});
