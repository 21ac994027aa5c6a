/**
 * Kills what remains of a container after its outer process has ended, and removes its cgroups. A jail exists a
 * moment longer than its outer process if something else kills that process.
 */
import { processesIn, removeEmptyGroup } from "../cgroups/cgroups.ts";
import { identifyProcess, isAlive, type ProcessIdentity, sendSignal } from "../processes.ts";

const firstPollMs = 1;
const pollMaxMs = 250;

/**
 * Returns when nothing is left: until then the tree and the groups must not be reused. It has no time limit, because
 * a process that the kernel does not end stays; callers have their own.
 */
export async function removeLeftovers(
  first: ProcessIdentity | undefined,
  groups: string[],
): Promise<void> {
  for (
    let waitMs = firstPollMs;
    !endRemaining(first, groups);
    waitMs = Math.min(waitMs * 2, pollMaxMs)
  ) {
    await Bun.sleep(waitMs);
  }
}

/** Kills what is left and returns true once nothing is. */
function endRemaining(first: ProcessIdentity | undefined, groups: string[]): boolean {
  try {
    const inGroups = groups.flatMap(processesIn).flatMap((pid) => identifyProcess(pid) ?? []);
    const left = [...(first === undefined ? [] : [first]), ...inGroups].filter(isAlive);
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
