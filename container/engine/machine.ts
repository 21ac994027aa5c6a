/** Probes once, at the engine's start, what this machine offers (user, cgroups, network) and phrases what it lacks. */
import { readFileSync } from "node:fs";
import { release } from "node:os";
import type { Isolation } from "../../src/protocol/health.ts";
import {
  type CgroupControllers,
  countsTcpMemory,
  findCgroupControllers,
} from "./cgroups/controllers.ts";
import { chooseNetwork, type NetworkChoice } from "./network/network.ts";
import type { DataFolders } from "./rootfs/folders.ts";
import { isProgram } from "./run.ts";
import { findRangeObstacle } from "./sandbox/probe-ranges.ts";
import type { LimitingMachine } from "./sandbox/user-limits.ts";
import type { Settings } from "./settings.ts";

export type Machine = LimitingMachine & {
  cgroups: CgroupControllers;
  network: NetworkChoice;
  isolation: Isolation;
  missing: string[];
};

export async function probeMachine(
  settings: Settings,
  instance: string,
  folders: DataFolders,
): Promise<Machine> {
  if (!isProgram("unshare"))
    throw new Error("`unshare` is missing. Install the package util-linux.");
  const isRoot = process.getuid?.() === 0;
  const cgroups = findCgroupControllers(instance);
  const [network, rangeObstacle] = await Promise.all([
    chooseNetwork(settings, instance),
    isRoot ? findRangeObstacle(settings, folders) : "Berth is not root",
  ]);
  const user = rangeObstacle === undefined ? "ranged" : isRoot ? "own" : "mapped";
  const raisesUserLimits = hasCapability(raiseLimits);
  const isolation: Isolation = {
    engine: "embedded",
    user,
    files: "overlay",
    processes: "namespace",
    network: network.mode,
    tree: cgroups.unified === undefined ? "subreaper" : "cgroup",
    memoryLimit: cgroups.memory !== undefined,
    processLimit: cgroups.processes !== undefined || user === "mapped",
    diskLimit: false,
  };
  return {
    user,
    cgroups,
    network,
    raisesUserLimits,
    accountsSignals: isKernelSince(5, 15),
    isolation,
    missing: [
      ...network.missing,
      ...missingFeatures(isolation, cgroups),
      ...(user === "own" && !raisesUserLimits ? [sharedLimits] : []),
      ...(rangeObstacle === undefined ? [] : [sharedUser(rangeObstacle)]),
    ],
  };
}

const raiseLimits = 24n;

const sharedLimits =
  "Sandboxes share one limit of processes, pending signals and message queues, because Berth lacks the capability CAP_SYS_RESOURCE.";
const sharedUser = (why: string) =>
  `There is no root inside, and all sandboxes are one user of the kernel (${why}): one can take the file watches (inotify), epoll watches and descriptors in flight of all. Run tenants that do not trust each other on machines of their own.`;

function hasCapability(number: bigint): boolean {
  const effective = /^CapEff:\s+([0-9a-f]+)$/m.exec(readFileSync("/proc/self/status", "utf8"))?.[1];
  return ((BigInt(`0x${effective ?? "0"}`) >> number) & 1n) === 1n;
}

function isKernelSince(major: number, minor: number): boolean {
  const [first = 0, second = 0] = release().split(".").map(Number);
  return first > major || (first === major && second >= minor);
}

function missingFeatures(isolation: Isolation, cgroups: CgroupControllers): string[] {
  const remedy = "Run Berth as root on a machine with writable cgroups to change that";
  const lines: [boolean, string][] = [
    [
      isolation.user !== "mapped",
      "Commands share one user with their agent, because Berth is not root. Run it as root for a separate user.",
    ],
    [isolation.memoryLimit, `Memory of a sandbox is not limited. ${remedy}.`],
    [
      !isolation.memoryLimit || countsTcpMemory(cgroups),
      "The kernel's memory for the TCP connections of a sandbox is not limited. Boot with cgroup version 2 to change that.",
    ],
    [
      cgroups.cpu !== undefined,
      `A sandbox with many processes takes processor time from the others. ${remedy}.`,
    ],
    [isolation.processLimit, `The number of processes of a sandbox is not limited. ${remedy}.`],
    [
      isolation.diskLimit,
      "Disk space of a sandbox is not limited. Put the data folder on a file system of its own.",
    ],
    [
      isolation.tree === "cgroup",
      `A subreaper, not a cgroup, tracks the processes of a command. ${remedy}.`,
    ],
  ];
  return lines.filter(([has]) => !has).map(([, sentence]) => sentence);
}
