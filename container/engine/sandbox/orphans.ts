/**
 * Ends every process that an earlier engine of this data folder left running, before the engine starts anything.
 * Files are kept: the next start of a sandbox finds its tree.
 */
import { readdirSync } from "node:fs";
import { processesIn, removeGroup } from "../cgroups/cgroups.ts";
import { type CgroupControllers, engineFolders } from "../cgroups/controllers.ts";
import { log, messageOf } from "../log.ts";
import { endPastas } from "../network/pasta.ts";
import {
  childrenOf,
  identifyProcess,
  isAlive,
  type ProcessIdentity,
  sendSignal,
} from "../processes.ts";
import { removeFolder } from "../rootfs/copy.ts";
import type { DataFolders } from "../rootfs/folders.ts";
import { readProcessRecords, removeProcessRecord } from "./process-records.ts";

const endTimeoutMs = 10_000;
const pollMs = 5;

/** Returns how many processes it ended. */
export async function endOrphans(
  folders: DataFolders,
  controllers: CgroupControllers,
): Promise<number> {
  const recorded = readProcessRecords(folders).flatMap(({ record }) =>
    record === undefined ? [] : processesOf(record.outer),
  );
  const groupFolders = sandboxGroups(controllers);
  const inGroups = groupFolders.flatMap(processesIn).flatMap((pid) => identifyProcess(pid) ?? []);
  const all = [...recorded, ...inGroups];
  for (const process of all) sendSignal(process, "SIGKILL");
  await waitUntilEnded(all);
  endPastas(folders.pastas);
  for (const { id } of readProcessRecords(folders)) removeProcessRecord(folders, id);
  for (const folder of groupFolders) removeGroup(folder);
  emptyTrash(folders);
  return all.length;
}

/** The agent comes first: `unshare` waits for it, and killing it ends its whole namespace. */
function processesOf(outer: ProcessIdentity): ProcessIdentity[] {
  if (!isAlive(outer)) return [];
  return [...childrenOf(outer.pid).flatMap((pid) => identifyProcess(pid) ?? []), outer];
}

function sandboxGroups(controllers: CgroupControllers): string[] {
  return engineFolders(controllers).flatMap((parent) =>
    readdirSync(parent, { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map((entry) => `${parent}/${entry.name}`),
  );
}

async function waitUntilEnded(processes: ProcessIdentity[]): Promise<void> {
  const deadline = performance.now() + endTimeoutMs;
  while (processes.some(isAlive)) {
    if (performance.now() > deadline) {
      const pids = processes.filter(isAlive).map(({ pid }) => pid);
      throw new Error(
        `Processes ${pids.join(", ")} of an earlier engine do not end. End them by hand.`,
      );
    }
    await Bun.sleep(pollMs);
  }
}

function emptyTrash(folders: DataFolders): void {
  for (const name of readdirSync(folders.trash)) {
    removeFolder(`${folders.trash}/${name}`).catch((error: unknown) =>
      log("trash_kept", { why: messageOf(error) }),
    );
  }
}
