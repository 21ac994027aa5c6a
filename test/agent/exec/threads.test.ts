import { readFileSync } from "node:fs";
import { afterEach, describe, expect, test } from "vitest";
import { treeOf } from "../../system/processes.ts";
import { Agent, kinds, threadsOf } from "../agent.ts";
import { Archives, types } from "../archive/archives.ts";
import { until } from "../until.ts";

/** The allocator's, and the few that wait for files, which are never ended. */
const lasting = /^(mi-scavenger|Bun Pool \d+)$/;

describe("the threads of an agent", () => {
  let agent: Agent;
  afterEach(() => agent.stop());
  const passing = (pid: number) => {
    try {
      // Born with the name of the first thread, it gets its own a moment later.
      const unnamed = readFileSync(`/proc/${pid}/comm`, "utf8").trim();
      return threadsOf(pid).filter((name) => name !== unnamed && !lasting.test(name));
    } catch (error) {
      // A tender that has ended since it was seen, or a thread that has.
      if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
      return [];
    }
  };

  test.each(kinds)(
    "[SC16] none is made once it runs, however much it does: in a full sandbox it could have none (%s)",
    async (tree) => {
      agent = await Agent.start({ tree });
      await until("files have a thread", () => agent.threads().includes("Bun Pool 0"));
      const seen = new Set<string>();
      const looking = setInterval(() => {
        for (const name of passing(agent.pid)) seen.add(name);
      }, 2);
      const archives = new Archives(agent);
      await agent.sh("mkdir full; head -c 8000000 /dev/urandom > full/bytes");
      for (let round = 0; round < 4; round += 1) {
        await Promise.all(
          Array.from({ length: 40 }, () => agent.sh("seq 20000; cat /proc/self/stat >&2")),
        );
        for (const type of types) {
          await archives.put(
            `copy-${round}-${type.slice(12)}`,
            await archives.bytes("full", type),
            type,
          );
        }
      }
      clearInterval(looking);
      expect([...seen]).toEqual([]);
    },
  );

  test("[SC16] nor does the tender of a command, for as long as that runs", async () => {
    agent = await Agent.start({ tree: "subreaper" });
    const running = agent.sh("sleep 2.5");
    const seen = new Set<string>();
    let looks = 0;
    const looking = setInterval(() => {
      const tenders = treeOf(agent.pid).filter(({ command }) => / tend$/.test(command));
      looks += tenders.length;
      for (const { pid } of tenders) for (const name of passing(pid)) seen.add(name);
    }, 5);
    expect(await running).toMatchObject({ exitCode: 0 });
    clearInterval(looking);
    expect(looks).toBeGreaterThan(20);
    expect([...seen]).toEqual([]);
  });
});
