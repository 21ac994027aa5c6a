/** Plays one fleet history: a script from its beginning to rest. */
import type { History } from "../simulation.ts";
import { injectFaults, performActions } from "../steps.ts";
import { FleetClient } from "./clients.ts";
import { startFault } from "./faults.ts";
import { Fleet } from "./fleet.ts";
import type { FleetBreakage } from "./fleet-breakages.ts";
import { checkRest } from "./rest.ts";
import type { Script } from "./script.ts";

export async function playFleet(script: Script, breakage?: FleetBreakage): Promise<History> {
  const fleet = new Fleet(script.seed, breakage);
  const clients = Array.from(
    { length: script.clients },
    (_, client) => new FleetClient(fleet, `c${client}`),
  );
  const history = await fleet.play(
    Promise.all([
      performActions(fleet, script.steps, clients),
      injectFaults(fleet, script.steps, startFault),
    ]),
    () => fleet.objects,
    () => checkRest(fleet),
  );
  fleet.close();
  return history;
}
