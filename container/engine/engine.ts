/**
 * Sets up one engine on one data folder: takes its lock, probes the machine and ends the processes of an earlier
 * engine.
 */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { removeGroup } from "./cgroups/cgroups.ts";
import { engineFolders } from "./cgroups/controllers.ts";
import { Images } from "./images/images.ts";
import { tryLock } from "./lock-file.ts";
import { log } from "./log.ts";
import { type Machine, probeMachine } from "./machine.ts";
import { disconnectEngine, resolvConf } from "./network/network.ts";
import { writeBaseRootfs } from "./rootfs/base-rootfs.ts";
import { cancelFileWork } from "./rootfs/file-work.ts";
import { type DataFolders, makeDataFolders } from "./rootfs/folders.ts";
import { writePrograms } from "./rootfs/programs.ts";
import { endOrphans } from "./sandbox/leftovers.ts";
import type { Settings } from "./settings.ts";

export type Engine = {
  settings: Settings;
  folders: DataFolders;
  machine: Machine;
  readOnlyFolders: string[];
  instance: string;
  images: Images;
};

export async function makeEngine(settings: Settings): Promise<Engine> {
  // Files made here are mounted as a root: their modes must not depend on the umask of the engine's parent.
  process.umask(0o022);
  if (!existsSync(settings.agent)) {
    throw new Error(
      `BERTH_ENGINE_AGENT: There is no agent at ${settings.agent}. Run \`npm run build\`.`,
    );
  }
  const folders = makeDataFolders(settings.data);
  takeInstanceLock(settings.data);
  const instance = loadInstanceId(settings.data);
  writePrograms(folders);
  const machine = await probeMachine(settings, instance, folders);
  const orphans = await endOrphans(folders, machine.cgroups);
  if (orphans > 0) log("orphans_ended", { processes: orphans });
  const readOnlyFolders = writeBaseRootfs(folders, resolvConf(machine.network.mode));
  const images = new Images(folders, settings.images, machine.user);
  return { settings, folders, machine, readOnlyFolders, instance, images };
}

/** Removes what the engine changed on the machine. Its containers must have ended. */
export async function closeEngine(engine: Engine): Promise<void> {
  await engine.images.close();
  await cancelFileWork();
  for (const folder of engineFolders(engine.machine.cgroups)) removeGroup(folder);
  await disconnectEngine(engine);
}

/** Locks a data folder for one engine. */
function takeInstanceLock(data: string): void {
  // Stays open for the life of the process and is not inherited by children.
  if (tryLock(`${data}/lock`) === undefined) {
    throw new Error(
      `BERTH_ENGINE_DATA: Another engine uses ${data}. Stop it or choose another folder.`,
    );
  }
}

/** Generated once per data folder: it names the engine's groups and interfaces across restarts. */
function loadInstanceId(data: string): string {
  const path = `${data}/instance`;
  if (existsSync(path)) {
    const stored = readFileSync(path, "utf8").trim();
    if (/^[a-z0-9]{8}$/.test(stored)) return stored;
  }
  const generated = crypto.randomUUID().slice(0, 8);
  writeFileSync(path, `${generated}\n`);
  return generated;
}
