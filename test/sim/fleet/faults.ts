/**
 * What each fault of a fleet history does, and how it ends. See script.ts for when.
 */
import type { World } from "../world.ts";
import type { Fleet } from "./fleet.ts";
import type { FaultName, Script } from "./script.ts";

type Fault = { size: number };

/** Returns how to end the fault, if it lasts. */
const begins: Record<FaultName, (fleet: Fleet, fault: Fault) => (() => void) | undefined> = {
  "plan crashes": (fleet, fault) => {
    const plan = oneOf(fleet.plans, fault);
    if (plan === undefined || fault.size < 0.3) {
      plan?.crash("dead");
      return undefined;
    }
    // Prolongs the critical time between a decision and its arrival on disk.
    plan.hasSlowDisk = true;
    return () => {
      plan.hasSlowDisk = false;
      plan.crash("dead");
    };
  },
  "plan is forgotten": (fleet, fault) => {
    oneOf(fleet.plans, fault)?.crash("forgotten");
    return undefined;
  },
  "directory crashes": ({ directory }) => {
    directory.crash("dead");
    return undefined;
  },
  "sandbox crashes": (fleet, fault) => {
    oneOf([...fleet.sandboxes.values()], fault)?.object.crash("dead");
    return undefined;
  },
  "sandbox is forgotten": (fleet, fault) => {
    oneOf([...fleet.sandboxes.values()], fault)?.object.crash("forgotten");
    return undefined;
  },
  "container dies": (fleet, fault) => {
    oneOf([...fleet.sandboxes.values()], fault)?.engine.exitContainer();
    return undefined;
  },
  "engine is away": (fleet, { size }) =>
    some(fleet, size, ({ engine }) => {
      engine.isUnreachable = true;
      return () => {
        engine.isUnreachable = false;
      };
    }),
  "engine refuses": (fleet, { size }) =>
    some(fleet, size, ({ engine }) => {
      engine.refuses = true;
      return () => {
        engine.refuses = false;
      };
    }),
  "messages are lost": ({ weather }, { size }) => {
    weather.lossShare = 0.05 + size * 0.35;
    return () => {
      weather.lossShare = 0;
    };
  },
  "messages are slow": ({ weather }) => {
    weather.isSlow = true;
    return () => {
      weather.isSlow = false;
    };
  },
  "questions come twice": ({ weather }) => {
    weather.repeats = true;
    return () => {
      weather.repeats = false;
    };
  },
  "alarms are late": ({ weather }) => {
    weather.hasLateAlarms = true;
    return () => {
      weather.hasLateAlarms = false;
    };
  },
};

/** Resolves when the last one is over. */
export async function goWrong(fleet: Fleet, { steps }: Script): Promise<void> {
  const faults = steps.filter((step) => step.kind === "fault");
  await Promise.all(
    faults.map(async ({ fault, atMs, ms, size }) => {
      await fleet.sleep(atMs, `FAULT: ${fault}`);
      fleet.count("fault", fault);
      const end = begins[fault](fleet, { size });
      if (end === undefined) return;
      await fleet.sleep(ms, `the fault is over: ${fault}`);
      end();
    }),
  );
}

function oneOf<T>(all: readonly T[], { size }: Fault): T | undefined {
  return all[Math.floor(size * all.length)];
}

/** Affects one sandbox or all. */
function some(fleet: Fleet, size: number, begin: (world: World) => () => void): () => void {
  const all = [...fleet.sandboxes.values()];
  const hit = size < 0.5 ? all : [oneOf(all, { size: (size - 0.5) * 2 })];
  const ends = hit.flatMap((world) => (world === undefined ? [] : [begin(world)]));
  return () => {
    for (const end of ends) end();
  };
}
