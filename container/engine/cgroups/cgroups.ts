/**
 * Owns the groups of sandboxes: their limits, what is in them, their removal.
 * Does not own the groups of single commands: the agent makes them below its sandbox's.
 */
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  writeFileSync,
} from "node:fs";
import { log, messageOf } from "../log.ts";
import type { Bounds } from "../sandbox/bounds.ts";
import { engineFolders, type Hierarchies } from "./controllers.ts";

export type SandboxGroups = {
  join: string[];
  /** Below it the agent makes one group for each command. */
  commands: string | undefined;
  all: string[];
};

export function makeGroups(hierarchies: Hierarchies, id: string, limits: Bounds): SandboxGroups {
  const { unified, memory, processes } = hierarchies;
  const all = engineFolders(hierarchies).map((parent) => `${parent}/${id}`);
  for (const folder of all) mkdirSync(folder, { recursive: true });
  if (memory !== undefined) {
    writeFileSync(`${memory.folder}/${id}/${memory.limit}`, String(limits.memoryBytes));
  }
  if (processes !== undefined) {
    writeFileSync(`${processes.folder}/${id}/pids.max`, String(limits.processes));
  }
  if (unified === undefined) return { join: all, commands: undefined, all };
  // A group with controllers for its children may not hold processes itself: the agent gets a leaf.
  const commands = `${unified}/${id}`;
  mkdirSync(`${commands}/agent`, { recursive: true });
  const join = all.map((folder) => (folder === commands ? `${commands}/agent` : folder));
  return { join, commands, all };
}

/** How often the kernel ended a process of this sandbox for want of memory. */
export function outOfMemoryCount(hierarchies: Hierarchies, id: string): number {
  const { memory } = hierarchies;
  if (memory === undefined) return 0;
  const file = memory.version === 2 ? "memory.events" : "memory.oom_control";
  const path = `${memory.folder}/${id}/${file}`;
  if (!existsSync(path)) return 0;
  return Number(/^oom_kill (\d+)$/m.exec(readFileSync(path, "utf8"))?.[1] ?? 0);
}

/** A group that still holds a process stays, and is said. */
export function removeGroup(folder: string): void {
  try {
    removeEmptyGroup(folder);
  } catch (error) {
    log("cgroup_kept", { folder, why: messageOf(error) });
  }
}

/** Children first. Throws where one of them is busy. */
export function removeEmptyGroup(folder: string): void {
  if (!existsSync(folder)) return;
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    if (entry.isDirectory()) removeEmptyGroup(`${folder}/${entry.name}`);
  }
  rmdirSync(folder);
}

export function processesIn(folder: string): number[] {
  if (!existsSync(folder)) return [];
  const own = readFileSync(`${folder}/cgroup.procs`, "utf8")
    .split("\n")
    .filter(Boolean)
    .map(Number);
  const below = readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .flatMap((entry) => processesIn(`${folder}/${entry.name}`));
  return [...own, ...below];
}
