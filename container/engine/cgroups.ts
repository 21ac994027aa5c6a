/**
 * Owns where on this machine control groups can be made, and those of this engine and its sandboxes.
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
import type { Bounds } from "./bounds.ts";
import { log, messageOf } from "./log.ts";

/** The engine's own folder in each hierarchy that it may write to. */
export type Hierarchies = {
  unified: string | undefined;
  /** The hierarchy that counts memory and the file of the limit; the unified one where it has the controller. */
  memory: { folder: string; limit: string; version: 1 | 2 } | undefined;
  processes: { folder: string } | undefined;
};

export type SandboxGroups = {
  join: string[];
  /** Below it the agent makes one group for each command. */
  commands: string | undefined;
  all: string[];
};

/** `instance` tells this engine's groups from those of another one on the machine. */
export function findHierarchies(instance: string): Hierarchies {
  const nothing = { unified: undefined, memory: undefined, processes: undefined };
  // Without root the folders belong to others, and a delegated one would end with its session.
  if (process.getuid?.() !== 0) return nothing;
  const mounts = mountedHierarchies();
  const name = `berth-${instance}`;
  const unified = unifiedFolder(mounts, name);
  const controllers = unified === undefined ? [] : enableControllers(unified);
  const v1 = (controller: string) => {
    const mount = mounts.find((it) => it.version === 1 && it.controllers.includes(controller));
    return mount === undefined ? undefined : ownFolder(`${mount.at}${ownPath(controller)}`, name);
  };
  const memoryV1 = controllers.includes("memory") ? undefined : v1("memory");
  const pidsV1 = controllers.includes("pids") ? undefined : v1("pids");
  return {
    unified,
    memory:
      unified !== undefined && controllers.includes("memory")
        ? { folder: unified, limit: "memory.max", version: 2 }
        : memoryV1 === undefined
          ? undefined
          : { folder: memoryV1, limit: "memory.limit_in_bytes", version: 1 },
    processes:
      unified !== undefined && controllers.includes("pids")
        ? { folder: unified }
        : pidsV1 === undefined
          ? undefined
          : { folder: pidsV1 },
  };
}

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

/** One in each hierarchy that is used, all named alike. */
export function engineFolders({ unified, memory, processes }: Hierarchies): string[] {
  const all = [unified, memory?.folder, processes?.folder];
  return [...new Set(all.filter((it) => it !== undefined))];
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

type Mounted = { at: string; version: 1 | 2; controllers: string[] };

function mountedHierarchies(): Mounted[] {
  return readFileSync("/proc/self/mounts", "utf8")
    .split("\n")
    .map((line) => line.split(" "))
    .filter(([, , type]) => type === "cgroup" || type === "cgroup2")
    .map(([, at = "", type, options = ""]) => ({
      at,
      version: type === "cgroup2" ? 2 : 1,
      controllers: options.split(","),
    }));
}

/** This process's place in a hierarchy, so that limits around the engine hold for its sandboxes too. */
function ownPath(controller: string): string {
  for (const line of readFileSync("/proc/self/cgroup", "utf8").split("\n")) {
    const [, names = "", path = "/"] = /^\d+:([^:]*):(.*)$/.exec(line) ?? [];
    if (names.split(",").includes(controller)) return path === "/" ? "" : path;
  }
  return "";
}

/**
 * Below this process's own group; where that is a leaf that cannot pass controllers on (a login session),
 * beside the top groups, which can.
 */
function unifiedFolder(mounts: Mounted[], name: string): string | undefined {
  const mount = mounts.find((it) => it.version === 2);
  if (mount === undefined) return undefined;
  const own = `${mount.at}${ownPath("")}`;
  const passes = (folder: string) =>
    ["memory", "pids"].every((it) => readWords(`${folder}/cgroup.subtree_control`).includes(it));
  const parents = passes(own) ? [own] : [...(passes(mount.at) ? [mount.at] : []), own];
  for (const parent of parents) {
    const folder = ownFolder(parent, name);
    if (folder !== undefined && existsSync(`${folder}/cgroup.kill`)) return folder;
  }
  return undefined;
}

function enableControllers(folder: string): string[] {
  const wanted = readWords(`${folder}/cgroup.controllers`).filter(
    (it) => it === "memory" || it === "pids",
  );
  return wanted.filter((controller) => {
    try {
      writeFileSync(`${folder}/cgroup.subtree_control`, `+${controller}`);
      return true;
    } catch (error) {
      log("controller_unavailable", { controller, why: messageOf(error) });
      return false;
    }
  });
}

function ownFolder(parent: string, name: string): string | undefined {
  const folder = `${parent}/${name}`;
  try {
    mkdirSync(folder, { recursive: true });
    return folder;
  } catch (error) {
    log("cgroup_unavailable", { folder, why: messageOf(error) });
    return undefined;
  }
}

function readWords(path: string): string[] {
  return existsSync(path) ? readFileSync(path, "utf8").trim().split(/\s+/) : [];
}
