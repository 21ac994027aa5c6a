/**
 * Finds the cgroup controllers that the engine may write to on this machine. See cgroups.ts for the groups of
 * sandboxes.
 */
import { existsSync, mkdirSync, readFileSync, writeFile, writeFileSync } from "node:fs";
import { log, messageOf } from "../log.ts";

/** The engine's own folder in the hierarchy that has this controller: the unified one if possible. */
type Controller = { folder: string; version: 1 | 2 };

/** The engine's own folder in each hierarchy that it may write to; undefined where there is none. */
export type CgroupControllers = {
  unified: string | undefined;
  memory: Controller | undefined;
  processes: Controller | undefined;
  cpu: Controller | undefined;
  /** The group of the engine's own process in one of these folders. */
  engineGroup: string | undefined;
};

/** `instance` keeps the groups of this engine apart from those of other engines on the machine. */
export function findCgroupControllers(instance: string): CgroupControllers {
  // Without root the folders belong to other users, and a delegated folder would end with its login session.
  if (process.getuid?.() !== 0) {
    return {
      ...{ unified: undefined, memory: undefined, processes: undefined, cpu: undefined },
      engineGroup: undefined,
    };
  }
  const mounts = readCgroupMounts();
  const name = `berth-${instance}`;
  const unified = unifiedFolder(mounts, name);
  const enabled = unified === undefined ? [] : enableControllers(unified);
  const find = (controller: string): Controller | undefined => {
    if (unified !== undefined && enabled.includes(controller))
      return { folder: unified, version: 2 };
    const group = ownGroupIn(mounts, controller);
    const folder = group === undefined ? undefined : makeFolder(group, name);
    return folder === undefined ? undefined : { folder, version: 1 };
  };
  const cpu = find("cpu");
  if (cpu !== undefined) giveWayToOthers(cpu);
  return {
    unified,
    memory: find("memory"),
    processes: find("pids"),
    cpu,
    engineGroup: [unifiedHierarchy, "memory", "pids", "cpu"]
      .map((controller) => ownGroupIn(mounts, controller))
      .find((group) => group !== undefined),
  };
}

/**
 * Gives all sandboxes together half of the usual weight, which the engine and workerd have: they come first where
 * they want the same processor. Each sandbox below keeps the kernel's default, so that all weigh the same.
 */
function giveWayToOthers({ folder, version }: Controller): void {
  const [file, weight] = version === 2 ? ["cpu.weight", 50] : ["cpu.shares", 512];
  try {
    writeFileSync(`${folder}/${file}`, String(weight));
  } catch (error) {
    log("cpu_weight_unavailable", { folder, why: messageOf(error) });
  }
}

/**
 * The kernel's memory for TCP is counted to a sandbox: with all other memory by version 2, and by a limit of its own,
 * which few kernels are built without, by version 1.
 */
export function countsTcpMemory({ memory }: CgroupControllers): boolean {
  if (memory === undefined) return false;
  return memory.version === 2 || existsSync(`${memory.folder}/${tcpLimitFile}`);
}

export const tcpLimitFile = "memory.kmem.tcp.limit_in_bytes";

/**
 * Moves the engine's process to its own group, which changes nothing. After a pause the kernel's first move between
 * groups waits 7 to 30 ms until every processor has seen it; later moves are fast. A starting agent makes several
 * moves, so this takes the delay on another thread meanwhile. If it fails, the agent's moves are slower, nothing
 * else.
 */
export function warmUpCgroupMoves({ engineGroup }: CgroupControllers): void {
  if (engineGroup !== undefined)
    writeFile(`${engineGroup}/cgroup.procs`, String(process.pid), () => {});
}

/** The engine's folder in each hierarchy in use; all have the same name. */
export function engineFolders({ unified, memory, processes, cpu }: CgroupControllers): string[] {
  const all = [unified, memory?.folder, processes?.folder, cpu?.folder];
  return [...new Set(all.filter((it) => it !== undefined))];
}

type CgroupMount = { mountPoint: string; version: 1 | 2; controllers: string[] };

function readCgroupMounts(): CgroupMount[] {
  return readFileSync("/proc/self/mounts", "utf8")
    .split("\n")
    .map((line) => line.split(" "))
    .filter(([, , type]) => type === "cgroup" || type === "cgroup2")
    .map(([, mountPoint = "", type, options = ""]) => ({
      mountPoint,
      version: type === "cgroup2" ? 2 : 1,
      controllers: options.split(","),
    }));
}

const unifiedHierarchy = "";

/** The group of this process in a hierarchy, so that limits around the engine also hold for its sandboxes. */
function ownGroupIn(mounts: CgroupMount[], controller: string): string | undefined {
  const matches = ({ version, controllers }: CgroupMount) =>
    controller === unifiedHierarchy
      ? version === 2
      : version === 1 && controllers.includes(controller);
  const mount = mounts.find(matches);
  return mount === undefined ? undefined : `${mount.mountPoint}${ownPath(controller)}`;
}

function ownPath(controller: string): string {
  for (const line of readFileSync("/proc/self/cgroup", "utf8").split("\n")) {
    const [, names = "", path = "/"] = /^\d+:([^:]*):(.*)$/.exec(line) ?? [];
    if (names.split(",").includes(controller)) return path === "/" ? "" : path;
  }
  return "";
}

/**
 * Below this process's own group, or at the top of the hierarchy if that group is a leaf that cannot delegate
 * controllers (a login session).
 */
function unifiedFolder(mounts: CgroupMount[], name: string): string | undefined {
  const mount = mounts.find((it) => it.version === 2);
  if (mount === undefined) return undefined;
  const own = `${mount.mountPoint}${ownPath(unifiedHierarchy)}`;
  const delegates = (folder: string) =>
    ["memory", "pids"].every((it) => readWords(`${folder}/cgroup.subtree_control`).includes(it));
  const parents = delegates(own)
    ? [own]
    : [...(delegates(mount.mountPoint) ? [mount.mountPoint] : []), own];
  for (const parent of parents) {
    const folder = makeFolder(parent, name);
    if (folder !== undefined && existsSync(`${folder}/cgroup.kill`)) return folder;
  }
  return undefined;
}

function enableControllers(folder: string): string[] {
  const available = readWords(`${folder}/cgroup.controllers`).filter((it) =>
    ["memory", "pids", "cpu"].includes(it),
  );
  return available.filter((controller) => {
    try {
      writeFileSync(`${folder}/cgroup.subtree_control`, `+${controller}`);
      return true;
    } catch (error) {
      log("controller_unavailable", { controller, why: messageOf(error) });
      return false;
    }
  });
}

function makeFolder(parent: string, name: string): string | undefined {
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
