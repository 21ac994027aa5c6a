/**
 * Owns what this machine can give: the user, groups, network; and the sentences for what it cannot.
 * Does not own any sandbox: the answers hold for all of them and are found once, at the engine's start.
 */
import type { Isolation } from "../../src/protocol/fields/isolation.ts";
import { findHierarchies, type Hierarchies } from "./cgroups/controllers.ts";
import { chooseNetwork, type NetworkChoice } from "./network/mode.ts";
import { isProgram } from "./run.ts";
import type { Settings } from "./settings.ts";

export type Machine = {
  user: "own" | "mapped";
  groups: Hierarchies;
  network: NetworkChoice;
  isolation: Isolation;
  missing: string[];
};

export async function lookAround(settings: Settings, instance: string): Promise<Machine> {
  if (!isProgram("unshare"))
    throw new Error("`unshare` is missing: install the package util-linux");
  const user = process.getuid?.() === 0 ? "own" : "mapped";
  const groups = findHierarchies(instance);
  const network = await chooseNetwork(settings, instance);
  const isolation: Isolation = {
    engine: "embedded",
    user,
    files: "overlay",
    processes: "namespace",
    network: network.mode,
    tree: groups.unified === undefined ? "subreaper" : "cgroup",
    memoryLimit: groups.memory !== undefined,
    processLimit: groups.processes !== undefined || user === "mapped",
    diskLimit: false,
  };
  return { user, groups, network, isolation, missing: [...network.missing, ...missing(isolation)] };
}

function missing(isolation: Isolation): string[] {
  const root = "run Berth as root on a machine with writable cgroups for it";
  const lines: [boolean, string][] = [
    [
      isolation.user === "own",
      "Commands share one user with their agent, as Berth is not root: run it as root for a user of their own.",
    ],
    [isolation.memoryLimit, `Memory of a sandbox is not limited: ${root}.`],
    [isolation.processLimit, `The number of processes of a sandbox is not limited: ${root}.`],
    [
      isolation.diskLimit,
      "Disk space of a sandbox is not limited: put the data folder on a file system of its own.",
    ],
    [
      isolation.tree === "cgroup",
      `A command's processes are held together by a subreaper: ${root}.`,
    ],
  ];
  return lines.filter(([has]) => !has).map(([, sentence]) => sentence);
}
