/**
 * Owns what the contract suite of a sandbox can see of one that runs in a real container.
 * Does not own how it is called: that is as with every Berth over REST.
 */
import { readFileSync } from "node:fs";
import type { Power, World } from "../contract/sandbox-api.ts";
import { realWorld } from "../system/api/contract-world.ts";
import { allProcesses } from "../system/processes.ts";
import type { Server } from "../system/server.ts";
import { boxesOf, type Home } from "./berth.ts";

export function dockerWorld(home: () => Home, server: () => Server): World {
  const world = realWorld(server);
  return {
    ...world,
    can: new Set<Power>(["sockets"]),
    async inside(id) {
      const { starts, ran } = await world.inside(id);
      const { incarnation = "" } = await world.berth.sandbox(id).get();
      const box = boxesOf(home()).find(
        ({ startId, state }) => state === "running" && incarnation.startsWith(`${startId}.`),
      );
      if (box === undefined) {
        return { alive: false, ran, running: 0, starts, metadata: {}, copied: 0 };
      }
      const running = allProcesses().filter(({ parent }) => parent === box.pid).length;
      return { alive: true, ran, running, starts, ...copyIn(box.pid) };
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
