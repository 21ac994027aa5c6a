/**
 * Owns what a fault is: something that is done to the server, and undone by the one who did it before it answers.
 */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Random } from "../../sim/random.ts";
import { alive, type Seen } from "../../system/processes.ts";
import type { Stage } from "../stage.ts";

export type Chaos = {
  stage: Stage;
  random: Random;
  /** Cuts waits short when the time of the faults is over. */
  over: AbortSignal;
};

/** By what name it is counted; undefined where there was nothing to do it to. */
export type Fault = (chaos: Chaos) => Promise<string | undefined>;

/** Programs of the server itself. */
export function partOf(stage: Stage, part: "engine" | "workerd" | "launcher"): Seen | undefined {
  const texts = {
    engine: "container/engine/main.ts",
    workerd: "workerd serve",
    launcher: "container/launch/start.js",
  };
  return stage
    .processes()
    .find(({ command }) => command.includes(texts[part]) && !command.startsWith("npm"));
}

/** One room that is there now: its outer process, and the agent, the first process inside. */
export function roomOf({ stage, random }: Chaos): { outer: Seen; agent: Seen } | undefined {
  const all = stage.processes();
  const rooms = notes(stage).flatMap((pid) => {
    const outer = all.find((seen) => seen.pid === pid);
    const agent = all.find((seen) => seen.parent === pid);
    return outer === undefined || agent === undefined ? [] : [{ outer, agent }];
  });
  return rooms[random.between(0, rooms.length - 1)];
}

/** False: it ended before, and its number may be another's. */
export function signal(seen: Seen, name: NodeJS.Signals): boolean {
  if (alive([seen]).length === 0) return false;
  try {
    process.kill(seen.pid, name);
    return true;
  } catch {
    return false;
  }
}

function notes({ data }: Stage): number[] {
  const folder = join(data, "engine/live");
  try {
    return readdirSync(folder).map((id) => {
      const note: unknown = JSON.parse(readFileSync(join(folder, id), "utf8"));
      return (note as { outer: { pid: number } }).outer.pid;
    });
  } catch {
    // One of them ended while we looked.
    return [];
  }
}
