/**
 * The form of a fault, which reverts what it did before it resolves, and the processes that faults hit.
 */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Random } from "../../sim/random.ts";
import { alive, type ProcessInfo } from "../../system/processes.ts";
import type { ServerUnderTest } from "../server-under-test.ts";

export type FaultContext = {
  target: ServerUnderTest;
  random: Random;
  /** Aborts waits when the time of the faults is over. */
  over: AbortSignal;
};

/** Resolves with the name under which it is counted; undefined if it had no target. */
export type Fault = (chaos: FaultContext) => Promise<string | undefined>;

/** Finds a process of the server itself. */
export function processOf(
  target: ServerUnderTest,
  part: "engine" | "workerd" | "launcher",
): ProcessInfo | undefined {
  const texts = {
    engine: "container/engine/main.ts",
    workerd: "workerd serve",
    launcher: "container/launch/start.js",
  };
  return target
    .processes()
    .find(({ command }) => command.includes(texts[part]) && !command.startsWith("npm"));
}

/** Picks a running jail: its outer process and its agent, the first process inside. */
export function pickJail({
  target,
  random,
}: FaultContext): { outer: ProcessInfo; agent: ProcessInfo } | undefined {
  const all = target.processes();
  const jails = recordedPids(target).flatMap((pid) => {
    const outer = all.find((seen) => seen.pid === pid);
    const agent = all.find((seen) => seen.parent === pid);
    return outer === undefined || agent === undefined ? [] : [{ outer, agent }];
  });
  return jails[random.between(0, jails.length - 1)];
}

/** Returns false if the process has ended; its PID may belong to another process. */
export function signal(seen: ProcessInfo, name: NodeJS.Signals): boolean {
  if (alive([seen]).length === 0) return false;
  try {
    process.kill(seen.pid, name);
    return true;
  } catch {
    return false;
  }
}

function recordedPids({ data }: ServerUnderTest): number[] {
  const folder = join(data, "engine/live");
  try {
    return readdirSync(folder).map((id) => {
      const record: unknown = JSON.parse(readFileSync(join(folder, id), "utf8"));
      return (record as { outer: { pid: number } }).outer.pid;
    });
  } catch {
    // One of them ended meanwhile.
    return [];
  }
}
