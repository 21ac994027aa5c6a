/** Finds the sandboxes that write to the disk, by what the kernel counts for their processes, and stops and continues them. */
import { readFileSync } from "node:fs";
import type { DiskWriters } from "../disk-guard.ts";
import { descendantsOf } from "../processes.ts";
import type { Containers } from "./containers.ts";

/** Pipes count too, so a sandbox that prints a little is no writer. */
const writtenBytesMin = 256 * 1024;
const [stop, resume] = [19, 18];

export function diskWriters(containers: Containers): DiskWriters {
  /** By the pid of a process: how much it had written when it was last sampled. */
  let sampled = new Map<number, number>();
  const stopped = new Set<string>();
  return {
    stopWriting() {
      const now = new Map<number, number>();
      for (const { id, pid } of containers.runningAgents()) {
        let written = 0;
        for (const process of descendantsOf(pid)) {
          const total = writtenBy(process);
          now.set(process, total);
          const before = sampled.get(process);
          // A process that is not known yet has begun since, unless nothing was sampled.
          if (sampled.size > 0 || before !== undefined) written += total - (before ?? 0);
        }
        if (written < writtenBytesMin) continue;
        containers.signal(id, stop);
        stopped.add(id);
      }
      sampled = now;
      return stopped.size;
    },
    continueWriting() {
      for (const id of stopped) containers.signal(id, resume);
      stopped.clear();
      sampled = new Map();
    },
  };
}

function writtenBy(pid: number): number {
  try {
    return Number(/^wchar: (\d+)$/m.exec(readFileSync(`/proc/${pid}/io`, "utf8"))?.[1] ?? 0);
  } catch {
    // It has ended, or belongs to another user of an engine without root.
    return 0;
  }
}
