/**
 * Owns the engine's first deed: whatever an earlier engine of this data folder left running is ended.
 * Does not own files: the trees are kept, and each next start of a sandbox finds its own.
 */
import { readdirSync } from "node:fs";
import { processesIn, removeGroup } from "../cgroups/cgroups.ts";
import { engineFolders, type Hierarchies } from "../cgroups/controllers.ts";
import { log, messageOf } from "../log.ts";
import { endPastas } from "../network/pasta.ts";
import { childrenOf, isAlive, nameOf, type ProcessName, sendSignal } from "../processes.ts";
import { removeFolder } from "../rootfs/copy.ts";
import type { Places } from "../rootfs/folders.ts";
import { forget, records } from "./records.ts";

const endTimeoutMs = 10_000;
const lookAgainMs = 5;

/** Answers how many processes it ended. */
export async function endStrays(places: Places, groups: Hierarchies): Promise<number> {
  const left = records(places).flatMap(({ life }) =>
    life === undefined ? [] : strayOf(life.outer),
  );
  const folders = ownFolders(groups);
  const inGroups = folders.flatMap(processesIn).flatMap((pid) => nameOf(pid) ?? []);
  const all = [...left, ...inGroups];
  for (const process of all) sendSignal(process, "SIGKILL");
  await untilGone(all);
  endPastas(places.pastas);
  for (const { id } of records(places)) forget(places, id);
  for (const folder of folders) removeGroup(folder);
  emptyTrash(places);
  return all.length;
}

/** The agent first: `unshare` waits for it, and killing it ends its whole namespace. */
function strayOf(outer: ProcessName): ProcessName[] {
  if (!isAlive(outer)) return [];
  return [...childrenOf(outer.pid).flatMap((pid) => nameOf(pid) ?? []), outer];
}

function ownFolders(groups: Hierarchies): string[] {
  return engineFolders(groups).flatMap((parent) =>
    readdirSync(parent, { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map((entry) => `${parent}/${entry.name}`),
  );
}

async function untilGone(processes: ProcessName[]): Promise<void> {
  const deadline = performance.now() + endTimeoutMs;
  while (processes.some(isAlive)) {
    if (performance.now() > deadline) {
      const pids = processes.filter(isAlive).map(({ pid }) => pid);
      throw new Error(
        `processes ${pids.join(", ")} of an earlier engine do not end: look at them by hand`,
      );
    }
    await Bun.sleep(lookAgainMs);
  }
}

function emptyTrash(places: Places): void {
  for (const name of readdirSync(places.trash)) {
    removeFolder(`${places.trash}/${name}`).catch((error: unknown) =>
      log("trash_kept", { why: messageOf(error) }),
    );
  }
}
