/** Plays one fleet history: a script from its beginning to rest, with its faults. */

import type { World } from "../sandbox/world.ts";
import type { History } from "../simulation.ts";
import {
  injectFaults,
  loseMessages,
  once,
  performActions,
  type StartFault,
  setFlag,
} from "../steps.ts";
import { FleetClient } from "./clients.ts";
import { Fleet } from "./fleet.ts";
import type { FleetBreakage } from "./fleet-breakages.ts";
import { checkRest } from "./rest.ts";
import type { FaultName, Script } from "./script.ts";

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

/** What each fault does, and how it ends. */
const startFault: Record<FaultName, StartFault<Fleet>> = {
  "plan crashes": ({ plans }, { size }) => {
    const plan = pick(plans, size);
    if (plan === undefined || size < 0.3) {
      plan?.crash("dead");
      return undefined;
    }
    // Prolongs the critical time between a decision and its arrival on disk.
    plan.database.isSlow = true;
    return () => {
      plan.database.isSlow = false;
      plan.crash("dead");
    };
  },
  "plan is forgotten": once(({ plans }, { size }) => pick(plans, size)?.crash("forgotten")),
  "directory crashes": once(({ directory }) => directory.crash("dead")),
  "sandbox crashes": once((fleet, { size }) => sandboxOf(fleet, size)?.object.crash("dead")),
  "sandbox is forgotten": once((fleet, { size }) =>
    sandboxOf(fleet, size)?.object.crash("forgotten"),
  ),
  "container dies": once((fleet, { size }) => sandboxOf(fleet, size)?.engine.exitContainer()),
  "engine is away": (fleet, { size }) =>
    inSome(fleet, size, ({ engine }) => setFlag(engine, "isUnreachable")),
  "engine refuses": (fleet, { size }) =>
    inSome(fleet, size, ({ engine }) => setFlag(engine, "refuses")),
  "messages are lost": (fleet, { size }) => loseMessages(fleet, 0.05 + size * 0.35),
  "messages are slow": ({ weather }) => setFlag(weather, "isSlow"),
  "questions come twice": ({ weather }) => setFlag(weather, "repeats"),
  "alarms are late": ({ weather }) => setFlag(weather, "hasLateAlarms"),
};

function pick<T>(all: readonly T[], size: number): T | undefined {
  return all[Math.floor(size * all.length)];
}

function sandboxOf({ sandboxes }: Fleet, size: number): World | undefined {
  return pick([...sandboxes.values()], size);
}

/** Affects one sandbox or all. */
function inSome(fleet: Fleet, size: number, begin: (world: World) => () => void): () => void {
  const affected =
    size < 0.5 ? [...fleet.sandboxes.values()] : [sandboxOf(fleet, (size - 0.5) * 2)];
  const ends = affected.flatMap((world) => (world === undefined ? [] : [begin(world)]));
  return () => {
    for (const end of ends) end();
  };
}
