/**
 * Ends what remains of containers: of one whose outer process has ended, and of all that an earlier engine of this data
 * folder left running. Files are kept: the next start of a sandbox finds its tree.
 */
import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { z } from "zod";
import { processesIn, removeEmptyGroup, removeGroup, subgroupsOf } from "../cgroups/cgroups.ts";
import { type CgroupControllers, engineFolders } from "../cgroups/controllers.ts";
import { endPastas } from "../network/pasta.ts";
import {
  childrenOf,
  identifyAll,
  isAlive,
  type ProcessIdentity,
  sendSignal,
} from "../processes.ts";
import { removeInBackground } from "../rootfs/file-work.ts";
import type { DataFolders } from "../rootfs/folders.ts";

const firstPollMs = 1;
const pollMaxMs = 250;
const orphansTimeoutMs = 10_000;
const orphansPollMs = 5;

const recordSchema = z.object({
  startId: z.string(),
  outer: z.object({ pid: z.int(), start: z.string() }),
});

/** Records a process on disk, so that the next engine can end it. */
export function writeProcessRecord(
  folders: DataFolders,
  id: string,
  record: z.infer<typeof recordSchema>,
): void {
  writeFileSync(`${folders.records}/${id}`, JSON.stringify(record));
}

export function removeProcessRecord(folders: DataFolders, id: string): void {
  rmSync(`${folders.records}/${id}`, { force: true });
}

/** Ends what an earlier engine left, before this one starts anything. Returns how many processes it ended. */
export async function endOrphans(
  folders: DataFolders,
  controllers: CgroupControllers,
): Promise<number> {
  const ids = readdirSync(folders.records);
  const groups = engineFolders(controllers).flatMap(subgroupsOf);
  const all = [
    ...ids.flatMap((id) => recordedProcesses(`${folders.records}/${id}`)),
    ...groups.flatMap(processesIn),
  ];
  for (const process of all) sendSignal(process, "SIGKILL");
  await waitUntilEnded(all);
  endPastas(folders.pastas);
  for (const id of ids) removeProcessRecord(folders, id);
  for (const group of groups) removeGroup(group);
  for (const name of readdirSync(folders.trash)) removeInBackground(`${folders.trash}/${name}`);
  return all.length;
}

/** The agent comes first: `unshare` waits for it, and killing it ends its whole namespace. */
function recordedProcesses(path: string): ProcessIdentity[] {
  try {
    const { outer } = recordSchema.parse(JSON.parse(readFileSync(path, "utf8")));
    return isAlive(outer) ? [...identifyAll(childrenOf(outer.pid)), outer] : [];
  } catch {
    // A record that a crash cut off names no process.
    return [];
  }
}

async function waitUntilEnded(processes: ProcessIdentity[]): Promise<void> {
  const deadline = performance.now() + orphansTimeoutMs;
  for (;;) {
    const alive = processes.filter(isAlive);
    if (alive.length === 0) return;
    if (performance.now() > deadline) {
      const pids = alive.map(({ pid }) => pid).join(", ");
      throw new Error(`Processes ${pids} of an earlier engine do not end. End them by hand.`);
    }
    await Bun.sleep(orphansPollMs);
  }
}

/**
 * Kills what remains of a container after its outer process has ended, and removes its cgroups. A jail exists a
 * moment longer than its outer process if something else kills that process.
 *
 * Returns when nothing is left: until then the tree and the groups must not be reused. It has no time limit, because
 * a process that the kernel does not end stays; callers have their own.
 */
export async function removeLeftovers(
  first: ProcessIdentity | undefined,
  groups: string[],
): Promise<void> {
  let waitMs = firstPollMs;
  while (!endRemaining(first, groups)) {
    await Bun.sleep(waitMs);
    waitMs = Math.min(waitMs * 2, pollMaxMs);
  }
}

/** Kills what is left and returns true once nothing is. */
function endRemaining(first: ProcessIdentity | undefined, groups: string[]): boolean {
  try {
    const left = [first ?? [], groups.flatMap(processesIn)].flat().filter(isAlive);
    for (const process of left) sendSignal(process, "SIGKILL");
    if (left.length > 0) return false;
    for (const group of groups) removeEmptyGroup(group);
    return true;
  } catch (error) {
    // The group may be busy for a moment after its last process, or may have changed while it was read.
    const { code = "" } = error as NodeJS.ErrnoException;
    if (["EBUSY", "ENOENT", "ENODEV"].includes(code)) return false;
    throw error;
  }
}
