/** Makes, limits and removes the cgroup of each sandbox. The agent makes a cgroup per command below its sandbox's. */
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  writeFileSync,
} from "node:fs";
import { log, messageOf } from "../log.ts";
import { identifyAll, type ProcessIdentity } from "../processes.ts";
import type { Bounds } from "../sandbox/bounds.ts";
import {
  type CgroupControllers,
  countsTcpMemory,
  engineFolders,
  tcpLimitFile,
} from "./controllers.ts";

export type SandboxGroups = {
  join: string[];
  /** The agent makes one group per command below this folder. */
  commands: string | undefined;
  all: string[];
};

/** A machine has a bound of its own for TCP, beyond which every connection of it stalls; one sandbox must not meet it. */
const tcpMemoryShare = 1 / 8;

export function makeGroups(
  controllers: CgroupControllers,
  id: string,
  limits: Bounds,
): SandboxGroups {
  const { unified, memory, processes } = controllers;
  const all = engineFolders(controllers).map((parent) => `${parent}/${id}`);
  for (const folder of all) mkdirSync(folder, { recursive: true });
  if (memory !== undefined) {
    const file = memory.version === 2 ? "memory.max" : "memory.limit_in_bytes";
    writeFileSync(`${memory.folder}/${id}/${file}`, String(limits.memoryBytes));
    if (memory.version === 1 && countsTcpMemory(controllers)) {
      const bytes = Math.floor(limits.memoryBytes * tcpMemoryShare);
      writeFileSync(`${memory.folder}/${id}/${tcpLimitFile}`, String(bytes));
    }
  }
  if (processes !== undefined) {
    writeFileSync(`${processes.folder}/${id}/pids.max`, String(limits.processes));
  }
  if (unified === undefined) return { join: all, commands: undefined, all };
  // A group that delegates controllers to its children may not hold processes: the agent gets a leaf.
  const commands = `${unified}/${id}`;
  mkdirSync(`${commands}/agent`, { recursive: true });
  const join = all.map((folder) => (folder === commands ? `${commands}/agent` : folder));
  return { join, commands, all };
}

/** How many processes of this sandbox the kernel has killed for lack of memory. */
export function outOfMemoryCount(controllers: CgroupControllers, id: string): number {
  const { memory } = controllers;
  if (memory === undefined) return 0;
  const file = memory.version === 2 ? "memory.events" : "memory.oom_control";
  const path = `${memory.folder}/${id}/${file}`;
  if (!existsSync(path)) return 0;
  return Number(/^oom_kill (\d+)$/m.exec(readFileSync(path, "utf8"))?.[1] ?? 0);
}

/** Leaves a group that still holds a process in place and logs it. */
export function removeGroup(folder: string): void {
  try {
    removeEmptyGroup(folder);
  } catch (error) {
    log("cgroup_kept", { folder, why: messageOf(error) });
  }
}

/** Removes children first. Throws if one of them is busy. */
export function removeEmptyGroup(folder: string): void {
  if (!existsSync(folder)) return;
  for (const group of subgroupsOf(folder)) removeEmptyGroup(group);
  rmdirSync(folder);
}

export function processesIn(folder: string): ProcessIdentity[] {
  if (!existsSync(folder)) return [];
  const pids = readFileSync(`${folder}/cgroup.procs`, "utf8").split("\n").filter(Boolean);
  return [...identifyAll(pids.map(Number)), ...subgroupsOf(folder).flatMap(processesIn)];
}

export function subgroupsOf(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map((entry) => `${folder}/${entry.name}`);
}
