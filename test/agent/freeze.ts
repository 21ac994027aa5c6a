/** Freezes a process so that even KILL has no effect, with a cgroup v1 freezer, which only root can create. */
import { existsSync, mkdirSync, rmdirSync, writeFileSync } from "node:fs";
import { isRoot } from "./agent.ts";

const freezer = "/sys/fs/cgroup/freezer";

export const canFreeze = isRoot && existsSync(`${freezer}/cgroup.procs`);

export function freeze(pid: string): { thaw: () => void; isRemoved: () => boolean } {
  const group = `${freezer}/berth-test-${pid}`;
  mkdirSync(group);
  writeFileSync(`${group}/cgroup.procs`, pid);
  writeFileSync(`${group}/freezer.state`, "FROZEN");
  return {
    thaw: () => writeFileSync(`${group}/freezer.state`, "THAWED"),
    isRemoved() {
      try {
        rmdirSync(group);
        return true;
      } catch {
        return false;
      }
    },
  };
}
