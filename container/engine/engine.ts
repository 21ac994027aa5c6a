/**
 * Owns the making of one engine on one data folder: alone on it, its machine looked at, strays ended.
 * Does not own containers (containers.ts) nor the server (server.ts).
 */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { removeGroup } from "./cgroups/cgroups.ts";
import { engineFolders } from "./cgroups/controllers.ts";
import { holdAlone } from "./instance-lock.ts";
import { log } from "./log.ts";
import { lookAround, type Machine } from "./machine.ts";
import { disconnectEngine } from "./network/connect.ts";
import { resolvConf } from "./network/mode.ts";
import { writeSkeleton } from "./rootfs/base-rootfs.ts";
import { giveUpFileWork } from "./rootfs/file-work.ts";
import { makePlaces, type Places } from "./rootfs/folders.ts";
import { endStrays } from "./sandbox/orphans.ts";
import type { Settings } from "./settings.ts";

export type Engine = {
  settings: Settings;
  places: Places;
  machine: Machine;
  readOnlyFolders: string[];
  instance: string;
};

export async function makeEngine(settings: Settings): Promise<Engine> {
  // What is made here is mounted as a root: its modes must not depend on who starts the engine.
  process.umask(0o022);
  if (!existsSync(settings.agent)) {
    throw new Error(
      `BERTH_ENGINE_AGENT: there is no agent at ${settings.agent}: run \`npm run build\``,
    );
  }
  const places = makePlaces(settings.data);
  holdAlone(settings.data);
  const instance = instanceOf(settings.data);
  const machine = await lookAround(settings, instance);
  const strays = await endStrays(places, machine.groups);
  if (strays > 0) log("strays_ended", { processes: strays });
  const readOnlyFolders = writeSkeleton(places, resolvConf(machine.network.mode));
  return { settings, places, machine, readOnlyFolders, instance };
}

/** Takes back what the engine itself made on the machine; its containers have ended before. */
export async function closeEngine(engine: Engine): Promise<void> {
  await giveUpFileWork();
  for (const folder of engineFolders(engine.machine.groups)) removeGroup(folder);
  await disconnectEngine(engine);
}

/** Drawn once for a data folder: it names the engine's groups and interfaces over all its restarts. */
function instanceOf(data: string): string {
  const path = `${data}/instance`;
  if (existsSync(path)) {
    const known = readFileSync(path, "utf8").trim();
    if (/^[a-z0-9]{8}$/.test(known)) return known;
  }
  const drawn = crypto.randomUUID().slice(0, 8);
  writeFileSync(path, `${drawn}\n`);
  return drawn;
}
