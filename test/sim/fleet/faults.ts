/** What each fault of a fleet history does, and how it ends. See script.ts for when. */
import type { World } from "../sandbox/world.ts";
import { loseMessages, once, type StartFault, setFlag } from "../steps.ts";
import type { Fleet } from "./fleet.ts";
import type { FaultName } from "./script.ts";

export const startFault: Record<FaultName, StartFault<Fleet>> = {
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
