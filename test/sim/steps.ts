/** Plays the steps of a script: the clients' calls, each client's in order, and the faults. */
import type { Simulation } from "./simulation.ts";

export type Step<Action, FaultName> =
  | { kind: "action"; client: number; restMs: number; action: Action }
  | { kind: "fault"; atMs: number; fault: FaultName; ms: number; size: number };

/** Starts a fault and returns how it ends, if it lasts. */
export type StartFault<World> = (
  world: World,
  fault: { ms: number; size: number },
) => (() => void) | undefined;

/** Resolves when all clients have finished. */
export async function performActions<Action>(
  world: Simulation,
  steps: readonly Step<Action, string>[],
  clients: { perform(action: Action): Promise<void> }[],
): Promise<void> {
  await Promise.all(
    clients.map(async (client, index) => {
      for (const step of steps) {
        if (step.kind !== "action" || step.client !== index) continue;
        await world.sleep(step.restMs, `client ${index} continues`);
        await client.perform(step.action);
      }
    }),
  );
}

/** Resolves when the last fault is over. */
export async function injectFaults<World extends Simulation, FaultName extends string>(
  world: World,
  steps: readonly Step<unknown, FaultName>[],
  startFault: Record<FaultName, StartFault<World>>,
): Promise<void> {
  const faults = steps.filter((step) => step.kind === "fault");
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
}

/** A fault without an end. */
export function once<World>(begin: (...args: Parameters<StartFault<World>>) => void) {
  return (...args: Parameters<StartFault<World>>): undefined => {
    begin(...args);
  };
}

/** Sets a flag until the fault ends. */
export function setFlag<Name extends string>(on: Record<Name, boolean>, name: Name): () => void {
  on[name] = true;
  return () => {
    on[name] = false;
  };
}

/** Loses a share of all messages until the fault ends. */
export function loseMessages({ weather }: Simulation, share: number): () => void {
  weather.lossShare = share;
  return () => {
    weather.lossShare = 0;
  };
}
