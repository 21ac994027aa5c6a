/** The sandbox contract over REST, with real containers. */
import { readFileSync } from "node:fs";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { type Power, sandboxApiContract, type World } from "../contract/sandbox-api.ts";
import { realWorld } from "../system/api/contract-world.ts";
import { allProcesses } from "../system/processes.ts";
import type { Server } from "../system/server.ts";
import { type BerthHome, containersOf, endBerth, newHome, startBerth } from "./berth.ts";

/** The number of tests in the suite that need neither a fake clock nor evictable objects. */
const testsMin = 98;

describe("a Berth over real containers", () => {
  let home: BerthHome;
  let server: Server | undefined;
  let passed = 0;
  const running = () => {
    if (server === undefined) throw new Error("wrangler dev is not running");
    return server;
  };

  beforeAll(async () => {
    home = newHome();
    server = await startBerth(home);
  });
  afterAll(async () => {
    await endBerth(home, server);
  });
  afterEach(() => {
    passed++;
  });

  sandboxApiContract(dockerWorld(() => home, running));

  it("[DK2] passes the contract of every Berth", () => {
    expect(passed).toBeGreaterThanOrEqual(testsMin);
    expect(containersOf(home).length).toBeGreaterThan(0);
  });
});

/** What the contract can observe of a sandbox in a real container. Calls are the same as for every Berth over REST. */
function dockerWorld(home: () => BerthHome, server: () => Server): World {
  const world = realWorld(server);
  return {
    ...world,
    can: new Set<Power>(["sockets"]),
    async inside(id) {
      const { starts, ran } = await world.inside(id);
      const { incarnation = "" } = await world.berth.sandbox(id).get();
      const container = containersOf(home()).find(
        ({ startId, state }) => state === "running" && incarnation.startsWith(`${startId}.`),
      );
      if (container === undefined) {
        return { alive: false, ran, running: 0, starts, metadata: {}, copied: 0 };
      }
      const running = allProcesses().filter(({ parent }) => parent === container.pid).length;
      return { alive: true, ran, running, starts, ...copyIn(container.pid) };
    },
  };
}

function copyIn(pid: number): { metadata: Record<string, string>; copied: number } {
  try {
    const text = readFileSync(`/proc/${pid}/root/run/berth/metadata.json`, "utf8");
    const { metadata, version } = JSON.parse(text);
    return { metadata, copied: version };
  } catch {
    // Before the first push, or the agent has just ended.
    return { metadata: {}, copied: 0 };
  }
}
