/**
 * What each fault of a plan does, and how it ends. See plan.ts for when.
 */
import type { FaultName, Plan } from "./script.ts";
import type { World } from "./world.ts";

type Fault = { ms: number; size: number };

/** Starts the fault and returns how it ends, if it lasts. */
type StartFault = (world: World, fault: Fault) => (() => void) | undefined;

const startFault: Record<FaultName, StartFault> = {
  crash: once((world) => world.object.crash("dead")),
  "forgotten instance": once((world) => world.object.crash("forgotten")),
  "crash after a commit": once((world, { size }) =>
    world.crashAfterCommits(1 + Math.floor(size * 12)),
  ),
  "crash with the container": once((world) => {
    world.object.crash("dead");
    world.engine.exitContainer();
  }),
  "container dies": once((world, { size }) =>
    world.engine.exitContainer(size < 0.5 ? "exited" : "out_of_memory"),
  ),
  "agent restarts": once((world) => world.engine.restartAgent()),
  "engine restarts": once((world) => world.engine.restart()),
  "clock steps": once((world, { ms }) => world.setClock(ms)),
  "clock steps back": once((world, { ms }) => world.setClock(-ms)),
  "agent is silent": (world) => {
    const { agent } = world.engine;
    agent?.setSilent(true);
    return () => agent?.setSilent(false);
  },
  "engine is away": (world) => {
    world.engine.isUnreachable = true;
    return () => {
      world.engine.isUnreachable = false;
    };
  },
  "engine refuses": (world) => {
    world.engine.refuses = true;
    return () => {
      world.engine.refuses = false;
    };
  },
  "messages are lost": ({ weather }, { size }) => {
    weather.lossShare = 0.05 + size * 0.4;
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
  "bodies are late": ({ weather }) => {
    weather.hasLateBodies = true;
    return () => {
      weather.hasLateBodies = false;
    };
  },
  "alarms are late": ({ weather }) => {
    weather.hasLateAlarms = true;
    return () => {
      weather.hasLateAlarms = false;
    };
  },
};

export const faultNames = Object.keys(startFault);

/** Resolves when the last fault is over. */
export async function injectFaults(world: World, plan: Plan): Promise<void> {
  const faults = plan.steps.filter((step) => step.kind === "fault");
  await Promise.all(
    faults.map(async ({ fault, atMs, ms, size }) => {
      await world.sleep(atMs, `FAULT: ${fault}`);
      world.count("fault", fault);
      const end = startFault[fault](world, { ms, size });
      if (end === undefined) return;
      await world.sleep(ms, `the fault is over: ${fault}`);
      end();
    }),
  );
  world.crashAfterCommits(0);
}

function once(begin: (world: World, fault: Fault) => void): StartFault {
  return (world, fault) => {
    begin(world, fault);
    return undefined;
  };
}
