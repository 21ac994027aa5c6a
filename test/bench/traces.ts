/**
 * Finds what a Berth, or an engine alone, has left on the machine after its end: processes, cgroups, mounts and
 * interfaces.
 */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { isRunning, nameOf } from "./processes.ts";

/** A program of the engine that was cleaning up may end this much later. */
const cleanUpMs = 3_000;

/** Returns a description of everything that is left. */
export async function tracesOf(data: string, processes: number[]): Promise<string[]> {
  const limit = performance.now() + cleanUpMs;
  for (;;) {
    const left = leftNow(data, processes);
    if (left.length === 0 || performance.now() > limit) return left;
    await sleep(50);
  }
}

function leftNow(data: string, processes: number[]): string[] {
  const file = join(data, "engine/instance");
  const instance = existsSync(file) ? readFileSync(file, "utf8").trim() : "";
  const mounts = readFileSync("/proc/self/mountinfo", "utf8").split("\n");
  const interfaces = readdirSync("/sys/class/net");
  return [
    ...processes.filter(isRunning).map((pid) => `process ${pid} (${nameOf(pid)})`),
    ...mounts.filter((line) => line.includes(data)).map((line) => `mount ${line.split(" ")[4]}`),
    ...interfaces
      .filter((name) => instance !== "" && name.startsWith(`brth${instance.slice(0, 6)}`))
      .map((name) => `interface ${name}`),
    ...(instance === "" ? [] : groupsOf(`berth-${instance}`, "/sys/fs/cgroup", 4)),
  ];
}

function groupsOf(name: string, folder: string, depth: number): string[] {
  if (depth === 0 || !existsSync(folder)) return [];
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (!entry.isDirectory()) return [];
    return entry.name === name ? [`group ${path}`] : groupsOf(name, path, depth - 1);
  });
}
