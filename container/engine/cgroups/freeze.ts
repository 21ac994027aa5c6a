/**
 * Owns holding every process of a container still while its files are copied.
 * Does not own the copy. Groups are frozen where there are any: programs cannot notice; else they are stopped.
 */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { BerthError } from "../../../src/protocol/errors.ts";
import { descendantsOf, isStopped, nameOf, type ProcessName, sendSignal } from "../processes.ts";

const freezeTimeoutMs = 10_000;
const lookAgainMs = 2;

export async function whileQuiet<T>(
  agent: ProcessName | undefined,
  group: string | undefined,
  work: () => Promise<T>,
): Promise<T> {
  if (agent === undefined) return await work();
  if (group !== undefined && existsSync(`${group}/cgroup.freeze`))
    return await whileFrozen(group, work);
  return await whileStopped(agent, work);
}

async function whileFrozen<T>(group: string, work: () => Promise<T>): Promise<T> {
  try {
    writeFileSync(`${group}/cgroup.freeze`, "1");
    await until(() => readFileSync(`${group}/cgroup.events`, "utf8").includes("frozen 1"));
    return await work();
  } finally {
    if (existsSync(group)) writeFileSync(`${group}/cgroup.freeze`, "0");
  }
}

/** The agent first, so that it starts nothing; then rounds, until one finds nobody new. */
async function whileStopped<T>(agent: ProcessName, work: () => Promise<T>): Promise<T> {
  const stopped: ProcessName[] = [];
  try {
    await until(() => {
      const running = [agent.pid, ...descendantsOf(agent.pid)].filter((pid) => !isStopped(pid));
      for (const process of running.flatMap((pid) => nameOf(pid) ?? [])) {
        if (sendSignal(process, "SIGSTOP")) stopped.push(process);
      }
      return running.length === 0;
    });
    return await work();
  } finally {
    for (const process of stopped.reverse()) sendSignal(process, "SIGCONT");
  }
}

async function until(done: () => boolean): Promise<void> {
  const deadline = performance.now() + freezeTimeoutMs;
  while (!done()) {
    if (performance.now() > deadline) {
      throw new BerthError(
        "unavailable",
        "the container's processes cannot be held still just now",
      );
    }
    await Bun.sleep(lookAgainMs);
  }
}
