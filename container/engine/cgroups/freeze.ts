/**
 * Freezes every process of a container while its files are copied: by the cgroup freezer, which programs do not
 * notice, or else by SIGSTOP.
 */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { BerthError } from "../../../src/protocol/errors.ts";
import {
  descendantsOf,
  identifyAll,
  isStopped,
  type ProcessIdentity,
  sendSignal,
} from "../processes.ts";

const freezeTimeoutMs = 10_000;
const pollMs = 2;

export async function withFrozenProcesses<T>(
  agent: ProcessIdentity | undefined,
  group: string | undefined,
  work: () => Promise<T>,
): Promise<T> {
  if (agent === undefined) return await work();
  if (group !== undefined && existsSync(`${group}/cgroup.freeze`))
    return await withFrozenGroup(group, work);
  return await withStoppedProcesses(agent, work);
}

async function withFrozenGroup<T>(group: string, work: () => Promise<T>): Promise<T> {
  try {
    writeFileSync(`${group}/cgroup.freeze`, "1");
    await waitUntil(() => readFileSync(`${group}/cgroup.events`, "utf8").includes("frozen 1"));
    return await work();
  } finally {
    if (existsSync(group)) writeFileSync(`${group}/cgroup.freeze`, "0");
  }
}

/** Stops the agent first, so that it starts nothing, then repeats until a round finds no running process. */
async function withStoppedProcesses<T>(agent: ProcessIdentity, work: () => Promise<T>): Promise<T> {
  const stopped: ProcessIdentity[] = [];
  try {
    await waitUntil(() => {
      const running = [agent.pid, ...descendantsOf(agent.pid)].filter((pid) => !isStopped(pid));
      for (const process of identifyAll(running)) {
        if (sendSignal(process, "SIGSTOP")) stopped.push(process);
      }
      return running.length === 0;
    });
    return await work();
  } finally {
    for (const process of stopped.reverse()) sendSignal(process, "SIGCONT");
  }
}

async function waitUntil(done: () => boolean): Promise<void> {
  const deadline = performance.now() + freezeTimeoutMs;
  while (!done()) {
    if (performance.now() > deadline) {
      throw new BerthError(
        "unavailable",
        "The processes of the container could not be frozen. Try again.",
      );
    }
    await Bun.sleep(pollMs);
  }
}
