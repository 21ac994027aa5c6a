/** What goes on while two saved trees are compared, and how long many files take. */
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { childrenOf } from "../../container/engine/processes.ts";
import {
  identities,
  isRunning,
  newData,
  newId,
  removeData,
  run,
  startEngine,
  type TestEngine,
  tracesOf,
  until,
} from "./test-engine.ts";
import { python } from "./workspaces.ts";

const listMax = 1000;
const files = 20_000;
/** Tens of thousands of files are also to be removed, by a disk that others use. */
const hangMs = 240_000;
const [as = "not root"] = identities();

describe("while trees are compared", () => {
  const data = newData(as);
  let engine: TestEngine;

  beforeAll(async () => {
    engine = await startEngine(as, { data });
  });
  afterAll(async () => {
    const processes = engine.processes();
    expect(processes.length).toBeGreaterThan(0);
    await engine.stop();
    expect(tracesOf(data, processes)).toEqual([]);
    removeData(data);
  }, hangMs);

  const comparisons = () =>
    childrenOf(engine.child.pid ?? 0).filter((pid) => commandOf(pid).includes("changes/main.ts"));
  /** Two trees that take a while to be compared: half a gigabyte of nothing has to be read. */
  const slow = async () => {
    const one = await run(engine);
    const make = (index: string) =>
      one.sh(`cd /workspace; truncate -s 512M big; touch -d ${index} big`);
    expect(await make("2001-01-01T00:00:00Z")).toMatchObject({ exitCode: 0 });
    const from = (await one.container.snapshot(newId())).handle;
    await make("2002-01-01T00:00:00Z");
    const to = (await one.container.snapshot(newId())).handle;
    return { one, from, to, kept: (id: string) => existsSync(`${data}/snapshots/${id}`) };
  };
  /** The comparison that has just begun, stopped until it is let go. */
  const held = async () => {
    await until("the comparison", () => comparisons().length > 0);
    const [pid = 0] = comparisons();
    process.kill(pid, "SIGSTOP");
    return pid;
  };

  it("[CH9] a snapshot that is removed is read to its end first; everything else of the engine goes on", async () => {
    const { one, from, to, kept } = await slow();
    const comparing = one.container.changes({ from, to, listMax });
    const pid = await held();
    const removals = [from, to].map((id) => one.container.removeSnapshot(id));
    const late = one.container.changes({ from, to, listMax });
    await expect(late).rejects.toMatchObject({ code: "not_found" });
    expect((await one.sh("echo on")).stdout).toBe("on\n");
    const other = await run(engine);
    expect((await other.container.snapshot(newId())).bytes).toBeGreaterThan(0);
    expect([kept(from), kept(to)]).toEqual([true, true]);
    process.kill(pid, "SIGCONT");
    expect((await comparing)?.counts).toEqual({ added: 0, modified: 0, deleted: 0 });
    await Promise.all(removals);
    expect([kept(from), kept(to)]).toEqual([false, false]);
    expect(comparisons()).toEqual([]);
  });

  it("[CH10] a comparison that nobody waits for any more is ended", async () => {
    const { from, to } = await slow();
    const patience = new AbortController();
    const asked = fetch(`${engine.baseUrl}/v1/snapshots/${to}/changes`, {
      method: "POST",
      signal: patience.signal,
      headers: { authorization: `Bearer ${engine.secret}` },
      body: JSON.stringify({ fromId: from, listMax }),
    }).catch(() => "given up");
    const pid = await held();
    patience.abort();
    expect(await asked).toBe("given up");
    await until("its end", () => !isRunning(pid));
  });

  it("[CH11] more of them at once than run at once all get their answer", async () => {
    const one = await run(engine);
    const from = (await one.container.snapshot(newId())).handle;
    await one.sh("echo x > /workspace/x");
    const to = (await one.container.snapshot(newId())).handle;
    const answers = Array.from({ length: 12 }, () => one.container.changes({ from, to, listMax }));
    let most = 0;
    const watching = setInterval(() => {
      most = Math.max(most, comparisons().length);
    }, 1);
    for (const answer of await Promise.all(answers)) expect(answer?.added).toEqual(["x"]);
    clearInterval(watching);
    expect(most).toBeGreaterThan(0);
    expect(most).toBeLessThanOrEqual(2);
  });

  it("[CH12] finds in 20,000 files what `diff` finds in them", {
    timeout: hangMs,
  }, async () => {
    const one = await run(engine);
    const write = `
import os
for n in range(${files}):
    at = f"/workspace/{n // 200}"
    if n % 200 == 0: os.mkdir(at)
    with open(f"{at}/{n}", "wb") as f: f.write(n.to_bytes(4, "big") * 100)
`;
    await python(one, write);
    const from = (await one.container.snapshot(newId())).handle;
    await one.sh("cd /workspace; rm -r 7; echo x > 8/1600; echo x > new");
    const to = (await one.container.snapshot(newId())).handle;
    const counts = (await one.container.changes({ from, to, listMax }))?.counts;
    expect(counts).toEqual({ added: 1, modified: 1, deleted: 200 });
    const trees = [from, to].map((id) => `${data}/snapshots/${id}/workspace`);
    const diff = spawnSync("diff", ["-rq", ...trees], { encoding: "utf8" });
    expect(diff.stdout.trim().split("\n").length).toBe(3);
  });
});

function commandOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8");
  } catch {
    // It ended while we looked.
    return "";
  }
}
