/**
 * Owns where a container's own cgroup v2 folder is, from what the kernel tells this process.
 * Does not own what is made below it (tree/cgroup.ts).
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";

/** Undefined: cgroup v2 is not mounted here. Whether it can be written to shows only when it is tried. */
export function findCgroup(): string | undefined {
  const own = /^0::(.*)$/m.exec(readFileSync("/proc/self/cgroup", "utf8"))?.[1];
  const mounts = readFileSync("/proc/self/mountinfo", "utf8").split("\n");
  const mount = mounts.find((line) => line.includes(" - cgroup2 "))?.split(" ");
  const [root, mountedAt] = [mount?.[3], mount?.[4]];
  if (own === undefined || root === undefined || mountedAt === undefined) return undefined;
  const below = own.startsWith(root) ? own.slice(root === "/" ? 0 : root.length) : own;
  return join(mountedAt, below);
}
