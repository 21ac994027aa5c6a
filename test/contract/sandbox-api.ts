/** The contract of a sandbox: the same promises for REST, RPC and the SDK. */
import { cancelledCallContract } from "./sandbox/cancelled-calls.ts";
import { eventContract } from "./sandbox/events.ts";
import { fileContract } from "./sandbox/files.ts";
import { idempotencyContract } from "./sandbox/idempotency.ts";
import { leaseEndContract } from "./sandbox/lease-end.ts";
import { leaseContract } from "./sandbox/leases.ts";
import { lifecycleContract } from "./sandbox/lifecycle.ts";
import { metadataContract } from "./sandbox/metadata.ts";
import { planContract } from "./sandbox/plans.ts";
import { portContract } from "./sandbox/ports.ts";
import { processLogContract } from "./sandbox/process-logs.ts";
import { processNameContract } from "./sandbox/process-names.ts";
import { processContract } from "./sandbox/processes.ts";
import { sessionContract } from "./sandbox/sessions.ts";
import { settingsContract } from "./sandbox/settings.ts";
import { terminalSocketContract } from "./sandbox/terminal-sockets.ts";
import { terminalContract } from "./sandbox/terminals.ts";
import { workContract } from "./sandbox/work.ts";
import type { World } from "./sandbox/world.ts";

export type { Power, Socket, World } from "./sandbox/world.ts";

/** In parts, for runners that slow down with each test. */
export const contractParts = {
  sandboxes: [lifecycleContract, metadataContract, settingsContract, eventContract],
  leases: [leaseContract, leaseEndContract],
  processes: [
    processContract,
    processNameContract,
    processLogContract,
    workContract,
    cancelledCallContract,
  ],
  shells: [sessionContract, terminalContract, terminalSocketContract],
  files: [fileContract, idempotencyContract, portContract],
  plans: [planContract],
} as const;

export function sandboxApiContract(world: World): void {
  for (const part of Object.values(contractParts)) for (const say of part) say(world);
}
