/**
 * Owns the suite over the one interface of a sandbox: whichever way a call travels, it keeps the same promises.
 */
import { eventContract } from "./sandbox/events.ts";
import { leaseEndContract } from "./sandbox/lease-end.ts";
import { leaseContract } from "./sandbox/leases.ts";
import { lifecycleContract } from "./sandbox/lifecycle.ts";
import { metadataContract } from "./sandbox/metadata.ts";
import type { World } from "./sandbox/world.ts";

export type { World } from "./sandbox/world.ts";

export function sandboxApiContract(world: World): void {
  lifecycleContract(world);
  leaseContract(world);
  leaseEndContract(world);
  metadataContract(world);
  eventContract(world);
}
