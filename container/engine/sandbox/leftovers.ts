/**
 * Owns the end of what a container leaves behind its outer process: where that is killed by somebody else, the room
 * outlives it for a moment. Whoever is left is killed, and the groups are taken away.
 * Does not own asking a container to end (life.ts), nor what another engine left (strays.ts).
 */
import { processesIn, removeEmptyGroup } from "../cgroups/cgroups.ts";
import { isAlive, nameOf, type ProcessName, sendSignal } from "../processes.ts";

const firstLookMs = 1;
const lookMaxMs = 250;

/**
 * Answers when none of it is left: until then nobody may have the tree or the groups. Without a limit of its own, as
 * what the kernel does not let go of stays where it is; whoever waits for this has one.
 */
export async function remainsGone(first: ProcessName | undefined, groups: string[]): Promise<void> {
  for (let lookMs = firstLookMs; !isGone(first, groups); lookMs = Math.min(lookMs * 2, lookMaxMs)) {
    await Bun.sleep(lookMs);
  }
}

function isGone(first: ProcessName | undefined, groups: string[]): boolean {
  try {
    const inGroups = groups.flatMap(processesIn).flatMap((pid) => nameOf(pid) ?? []);
    const left = [...(first === undefined ? [] : [first]), ...inGroups].filter(isAlive);
    for (const process of left) sendSignal(process, "SIGKILL");
    if (left.length > 0) return false;
    for (const group of groups) removeEmptyGroup(group);
    return true;
  } catch (error) {
    // Busy, as a group may be for a moment after its last process; or changed by that one while we looked.
    const { code = "" } = error as NodeJS.ErrnoException;
    if (["EBUSY", "ENOENT", "ENODEV"].includes(code)) return false;
    throw error;
  }
}
