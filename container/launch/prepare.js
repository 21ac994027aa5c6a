/**
 * Owns what must hold before anything is started, in the order in which a person is told of it.
 * Does not own any of the steps.
 */
import { requireFreeAddress } from "./address.js";
import { build } from "./build.js";
import { openDataFolder } from "./data-folder.js";
import { requireDescriptors } from "./descriptors.js";
import { install } from "./install.js";
import { endLeftovers } from "./process-record.js";

/**
 * @param {{ host: string, port: number, data: string }} options
 */
export async function prepare({ host, port, data }) {
  const sandboxesMax = requireDescriptors(process.env.BERTH_ENGINE_CONTAINERS_MAX);
  const lock = openDataFolder(data);
  await endLeftovers(data);
  await requireFreeAddress(host, port);
  await install();
  await build();
  return { sandboxesMax, release: lock.release };
}
