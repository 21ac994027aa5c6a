/**
 * Owns where on this machine control groups can be made, and where in that the engine itself stands.
 * Does not own the groups of sandboxes (cgroups.ts).
 */
import { existsSync, mkdirSync, readFileSync, writeFile, writeFileSync } from "node:fs";
import { log, messageOf } from "../log.ts";

/** The engine's own folder in each hierarchy that it may write to. */
export type Hierarchies = {
  unified: string | undefined;
  /** The hierarchy that counts memory and the file of the limit; the unified one where it has the controller. */
  memory: { folder: string; limit: string; version: 1 | 2 } | undefined;
  processes: { folder: string } | undefined;
  /** The group that the engine itself stands in, in one of them. */
  standing: string | undefined;
};

/** `instance` tells this engine's groups from those of another one on the machine. */
export function findHierarchies(instance: string): Hierarchies {
  // Without root the folders belong to others, and a delegated one would end with its session.
  if (process.getuid?.() !== 0) {
    return { unified: undefined, memory: undefined, processes: undefined, standing: undefined };
  }
  const mounts = mountedHierarchies();
  const name = `berth-${instance}`;
  const unified = unifiedFolder(mounts, name);
  const controllers = unified === undefined ? [] : enableControllers(unified);
  const v1 = (controller: string) => {
    const place = placeIn(mounts, controller);
    return place === undefined ? undefined : ownFolder(place, name);
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
    standing: [unifiedHierarchy, "memory", "pids"]
      .map((controller) => placeIn(mounts, controller))
      .find((place) => place !== undefined),
  };
}

/**
 * The first move of a process between groups after a pause waits until each processor has seen that one is under way, 7
 * to 30 ms, and those that follow do not. An agent that comes up makes some: so one that changes nothing is made
 * meanwhile, on another thread, and waited for by nobody. Where it fails theirs take their time.
 */
export function moveAhead({ standing }: Hierarchies): void {
  if (standing !== undefined) writeFile(`${standing}/cgroup.procs`, String(process.pid), () => {});
}

/** One in each hierarchy that is used, all named alike. */
export function engineFolders({ unified, memory, processes }: Hierarchies): string[] {
  const all = [unified, memory?.folder, processes?.folder];
  return [...new Set(all.filter((it) => it !== undefined))];
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

const unifiedHierarchy = "";

/** This process's place in a hierarchy, so that limits around the engine hold for its sandboxes too. */
function placeIn(mounts: Mounted[], controller: string): string | undefined {
  const isIts = ({ version, controllers }: Mounted) =>
    controller === unifiedHierarchy
      ? version === 2
      : version === 1 && controllers.includes(controller);
  const mount = mounts.find(isIts);
  return mount === undefined ? undefined : `${mount.at}${ownPath(controller)}`;
}

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
  const own = `${mount.at}${ownPath(unifiedHierarchy)}`;
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
