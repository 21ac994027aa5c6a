/** Concurrent operations while two saved trees are compared, and a comparison of many files. */
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { childrenOf } from "../../container/engine/processes.ts";
import { until } from "../until.ts";
import { commandOf, identities, isRunning, newId, run, sharedEngine } from "./test-engine.ts";
import { python } from "./workspaces.ts";

const listMax = 1000;
const files = 20_000;
/** Removing tens of thousands of files takes long on a shared disk. */
const hangMs = 240_000;
const [as = "not root"] = identities();

describe("while trees are compared", () => {
  const engine = sharedEngine(as, { hookTimeoutMs: hangMs });

  const comparisons = () =>
    childrenOf(engine.child.pid ?? 0).filter((pid) => commandOf(pid).includes("/changes/main"));
  /** Two trees whose comparison takes a while, because half a gigabyte of zeros must be read. */
  const slow = async () => {
    const sandbox = await run(engine);
    const make = (index: string) =>
      sandbox.sh(`cd /workspace; truncate -s 512M big; touch -d ${index} big`);
    expect(await make("2001-01-01T00:00:00Z")).toMatchObject({ exitCode: 0 });
    const from = (await sandbox.container.snapshot(newId())).handle;
    await make("2002-01-01T00:00:00Z");
    const to = (await sandbox.container.snapshot(newId())).handle;
    return {
      sandbox,
      from,
      to,
      isStored: (id: string) => existsSync(`${engine.data}/snapshots/${id}`),
    };
  };
  /** Stops the comparison that has just started. */
  const stopComparison = async () => {
    let pid: number | undefined;
    await until("the comparison", () => {
      [pid] = comparisons();
      return pid !== undefined && process.kill(pid, "SIGSTOP");
    });
    return Number(pid);
  };

  it("[CH9] a snapshot that is being read is removed only afterwards, and the engine serves other calls meanwhile", async () => {
    const { sandbox, from, to, isStored } = await slow();
    const comparing = sandbox.container.changes({ from, to, listMax });
    const pid = await stopComparison();
    const removals = [from, to].map((id) => sandbox.container.removeSnapshot(id));
    const afterRemoval = sandbox.container.changes({ from, to, listMax });
    await expect(afterRemoval).rejects.toMatchObject({ code: "not_found" });
    expect((await sandbox.sh("echo on")).stdout).toBe("on\n");
    const other = await run(engine);
    expect((await other.container.snapshot(newId())).bytes).toBeGreaterThan(0);
    expect([isStored(from), isStored(to)]).toEqual([true, true]);
    process.kill(pid, "SIGCONT");
    expect((await comparing)?.counts).toEqual({ added: 0, modified: 0, deleted: 0 });
    await Promise.all(removals);
    expect([isStored(from), isStored(to)]).toEqual([false, false]);
    expect(comparisons()).toEqual([]);
  });

  it("[CH10] a comparison ends when its caller disconnects", async () => {
    const { from, to } = await slow();
    const aborter = new AbortController();
    const request = fetch(`${engine.baseUrl}/v1/snapshots/${to}/changes`, {
      method: "POST",
      signal: aborter.signal,
      headers: { authorization: `Bearer ${engine.secret}` },
      body: JSON.stringify({ fromId: from, listMax }),
    }).catch(() => "aborted");
    const pid = await stopComparison();
    aborter.abort();
    expect(await request).toBe("aborted");
    await until("its end", () => !isRunning(pid));
  });

  it("[CH11] comparisons beyond the limit wait and all get their result", async () => {
    const sandbox = await run(engine);
    const from = (await sandbox.container.snapshot(newId())).handle;
    await sandbox.sh("echo x > /workspace/x");
    const to = (await sandbox.container.snapshot(newId())).handle;
    const results = Array.from({ length: 12 }, () =>
      sandbox.container.changes({ from, to, listMax }),
    );
    let most = 0;
    const watching = setInterval(() => {
      most = Math.max(most, comparisons().length);
    }, 1);
    for (const result of await Promise.all(results)) expect(result?.added).toEqual(["x"]);
    clearInterval(watching);
    expect(most).toBeGreaterThan(0);
    expect(most).toBeLessThanOrEqual(2);
  });

  it("[CH12] finds in 20,000 files what `diff` finds", {
    timeout: hangMs,
  }, async () => {
    const sandbox = await run(engine);
    const write = `
import os
for n in range(${files}):
    at = f"/workspace/{n // 200}"
    if n % 200 == 0: os.mkdir(at)
    with open(f"{at}/{n}", "wb") as f: f.write(n.to_bytes(4, "big") * 100)
`;
    await python(sandbox, write);
    const from = (await sandbox.container.snapshot(newId())).handle;
    await sandbox.sh("cd /workspace; rm -r 7; echo x > 8/1600; echo x > new");
    const to = (await sandbox.container.snapshot(newId())).handle;
    const counts = (await sandbox.container.changes({ from, to, listMax }))?.counts;
    expect(counts).toEqual({ added: 1, modified: 1, deleted: 200 });
    const trees = [from, to].map((id) => `${engine.data}/snapshots/${id}/workspace`);
    const diff = spawnSync("diff", ["-rq", ...trees], { encoding: "utf8" });
    expect(diff.stdout.trim().split("\n").length).toBe(3);
  });
});
