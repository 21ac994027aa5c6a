/**
 * What the sandbox contract can observe of a sandbox in a real container. Calls are the same as for every Berth over
 * REST.
 */
import { readFileSync } from "node:fs";
import type { Power, World } from "../contract/sandbox-api.ts";
import { realWorld } from "../system/api/contract-world.ts";
import { allProcesses } from "../system/processes.ts";
import type { Server } from "../system/server.ts";
import { type BerthHome, containersOf } from "./berth.ts";

export function dockerWorld(home: () => BerthHome, server: () => Server): World {
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
