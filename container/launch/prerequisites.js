/**
 * Ensures everything that a server needs before it starts, in the order in which a user should see the problems.
 */
import { requireFreeAddress } from "./address.js";
import { build } from "./build.js";
import { openDataFolder } from "./data-folder.js";
import { ensureDescriptors } from "./descriptors.js";
import { install } from "./install.js";
import { endLeftoverProcesses } from "./process-record.js";

/**
 * @param {{ host: string, port: number, data: string }} options
 */
export async function ensurePrerequisites({ host, port, data }) {
  const sandboxesMax = ensureDescriptors(process.env.BERTH_ENGINE_CONTAINERS_MAX);
  const lock = openDataFolder(data);
  await endLeftoverProcesses(data);
  await requireFreeAddress(host, port);
  await install();
  await build();
  return { sandboxesMax, release: lock.release };
}
