import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { treeOf } from "../../system/processes.ts";
import { until } from "../../until.ts";
import { Agent, kinds } from "../agent.ts";
import { Archives, types } from "../archive/archives.ts";
import { threadsOf } from "../proc.ts";

/** The thread of the allocator, and the few for files, which never end. */
const lasting = /^(mi-scavenger|Bun Pool \d+)$/;

describe("the threads of an agent", () => {
  const passing = (pid: number) => {
    try {
      // A new thread has the name of the first one, and gets its own a moment later.
      const unnamed = readFileSync(`/proc/${pid}/comm`, "utf8").trim();
      return threadsOf(pid).filter((name) => name !== unnamed && !lasting.test(name));
    } catch (error) {
      // The subreaper or the thread has ended meanwhile.
      if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
      return [];
    }
  };

  test.each(kinds)(
    "[SC16] a running agent creates none, however much it does, because a full sandbox has no room for one (%s)",
    async (tree) => {
      await using agent = await Agent.start({ tree });
      await until("files have a thread", () => agent.threads().includes("Bun Pool 0"));
      const seen = new Set<string>();
      const sampling = setInterval(() => {
        for (const name of passing(agent.pid)) seen.add(name);
      }, 2);
      const archives = new Archives(agent);
      await agent.sh("mkdir full; head -c 8000000 /dev/urandom > full/bytes");
      for (let round = 0; round < 4; round += 1) {
        await Promise.all(
          Array.from({ length: 40 }, () => agent.sh("seq 20000; cat /proc/self/stat >&2")),
        );
        for (const type of types) {
          const bytes = await archives.bytes("full", type);
          await archives.put(`copy-${round}-${type.slice(12)}`, bytes, type);
        }
      }
      clearInterval(sampling);
      expect([...seen]).toEqual([]);
    },
  );

  test("[SC16] the subreaper of a command creates none", async () => {
    await using agent = await Agent.start({ tree: "subreaper" });
    const running = agent.sh("sleep 2.5");
    const seen = new Set<string>();
    let samples = 0;
    const sampling = setInterval(() => {
      const subreapers = treeOf(agent.pid).filter(({ command }) => / subreaper$/.test(command));
      samples += subreapers.length;
      for (const { pid } of subreapers) for (const name of passing(pid)) seen.add(name);
    }, 5);
    expect(await running).toMatchObject({ exitCode: 0 });
    clearInterval(sampling);
    expect(samples).toBeGreaterThan(20);
    expect([...seen]).toEqual([]);
  });
});
