/** Measures the sandbox: by its cgroups where the agent has them, else by the table of processes. */
import { readdirSync, readFileSync, statfsSync } from "node:fs";
import { availableParallelism, totalmem } from "node:os";
import type { Metric, Metrics } from "../../../src/protocol/metrics.ts";
import type { CgroupMeters } from "../../engine/jail/meters.ts";

import { catchCodes } from "../kernel/error-codes.ts";

export type Meters = { cgroup: CgroupMeters; hasOwnNetwork: boolean };

export type Measured = Omit<Metric, "at" | "processors">;

/** USER_HZ: the same on every Linux. */
const tickMs = 10;
const pageBytes = 4096;

export function measure({ cgroup, hasOwnNetwork }: Meters, workspace: string): Measured {
  const memory = readCgroupMemory(cgroup);
  const table = readProcessTable(memory === undefined);
  return {
    processorMs: readCgroupTime(cgroup) ?? table.ticks * tickMs,
    memoryBytes: memory ?? table.memoryBytes,
    processes: table.processes,
    diskBytes: readDisk(workspace).usedBytes,
    ...(hasOwnNetwork ? { network: readNetwork() } : {}),
  };
}

export function readLimits({ cgroup }: Meters, workspace: string): Metrics["limits"] {
  const [quota, periodUs] = (cgroup.read("processorsMax") ?? "").split(" ").map(Number);
  const processors = (quota ?? Number.NaN) / (periodUs ?? Number.NaN);
  const memoryMax = Number(cgroup.read("memoryMax") ?? Number.NaN);
  const processesMax = Number(cgroup.read("processesMax") ?? Number.NaN);
  return {
    processors: Number.isFinite(processors) ? processors : availableParallelism(),
    memoryBytes: Number.isNaN(memoryMax) ? totalmem() : Math.min(memoryMax, totalmem()),
    ...(Number.isFinite(processesMax) ? { processes: processesMax } : {}),
    diskBytes: readDisk(workspace).allBytes,
  };
}

/** Milliseconds since the group was made. */
export function readCgroupTime(cgroup: CgroupMeters): number | undefined {
  const usedUs = /^usage_usec (\d+)$/m.exec(cgroup.read("processors") ?? "")?.[1];
  return usedUs === undefined ? undefined : Math.round(Number(usedUs) / 1000);
}

/** Without inactive pages of files, which the kernel drops before it refuses memory. */
function readCgroupMemory(cgroup: CgroupMeters): number | undefined {
  const all = cgroup.read("memory");
  if (all === undefined) return undefined;
  const stat = cgroup.read("memoryStat") ?? "";
  const cache = /^total_inactive_file (\d+)$/m.exec(stat) ?? /^inactive_file (\d+)$/m.exec(stat);
  return Math.max(0, Number(all) - Number(cache?.[1] ?? 0));
}

type Line = { parent: number; ticks: number };

/**
 * Sums up the agent and everything below it. A process that ends leaves its time to the parent that waits for it, so
 * that the sum over the living has the time of the dead too.
 */
function readProcessTable(withMemory: boolean) {
  const lines = new Map<number, Line>();
  for (const name of readdirSync("/proc")) {
    const pid = Number(name);
    const line = Number.isInteger(pid) ? readLine(pid) : undefined;
    if (line !== undefined) lines.set(pid, line);
  }
  const isOwn = (pid: number): boolean => {
    let ancestor = pid;
    while (ancestor !== process.pid && ancestor !== 0) ancestor = lines.get(ancestor)?.parent ?? 0;
    return ancestor !== 0;
  };
  let [ticks, processes, memoryBytes] = [0, -1, 0];
  for (const [pid, line] of lines) {
    if (!isOwn(pid)) continue;
    processes += 1;
    ticks += line.ticks;
    if (withMemory) memoryBytes += readOwnMemory(pid);
  }
  return { ticks, processes, memoryBytes };
}

function readLine(pid: number): Line | undefined {
  const stat = readText(`/proc/${pid}/stat`);
  if (stat === undefined) return undefined;
  // The name is in parentheses and may itself contain parentheses.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const ticks = fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0);
  return { parent: Number(fields[1]), ticks };
}

/** Resident pages that are not shared with a file or another process. */
function readOwnMemory(pid: number): number {
  const [, resident = 0, shared = 0] = (readText(`/proc/${pid}/statm`) ?? "")
    .split(" ")
    .map(Number);
  return Math.max(0, resident - shared) * pageBytes;
}

function readDisk(workspace: string): { usedBytes: number; allBytes: number } {
  // A root inside may have moved it away.
  const disk = catchCodes(["ENOENT", "ENOTDIR"], () => statfsSync(workspace));
  if (disk === undefined) return { usedBytes: 0, allBytes: 0 };
  const { blocks, bfree, bavail, bsize } = disk;
  const used = blocks - bfree;
  return { usedBytes: used * bsize, allBytes: (used + bavail) * bsize };
}

function readNetwork(): NonNullable<Metric["network"]> {
  let [receivedBytes, sentBytes] = [0, 0];
  for (const line of (readText("/proc/self/net/dev") ?? "").split("\n")) {
    const [, name, counts = ""] = /^\s*([^:\s]+):\s*(.*)$/.exec(line) ?? [];
    if (name === undefined || name === "lo") continue;
    const fields = counts.split(/\s+/).map(Number);
    receivedBytes += fields[0] ?? 0;
    sentBytes += fields[8] ?? 0;
  }
  return { receivedBytes, sentBytes };
}

/** Undefined: the process ended meanwhile. */
function readText(path: string): string | undefined {
  try {
    return readFileSync(path, "latin1");
  } catch {
    return undefined;
  }
}
