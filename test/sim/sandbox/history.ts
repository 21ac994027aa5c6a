/** Plays one plan from start to quiet, with its faults, and shrinks a failing one. */
import type { History } from "../simulation.ts";
import { injectFaults, loseMessages, once, type StartFault, setFlag } from "../steps.ts";
import type { Breakage } from "./breakages.ts";
import { serveClients } from "./clients.ts";
import { checkQuiet } from "./quiet.ts";
import type { FaultName, Plan } from "./script.ts";
import { World } from "./world.ts";

const playsMax = 400;

export async function play(
  plan: Plan,
  breakage?: Breakage,
  { platform = false }: { platform?: boolean } = {},
): Promise<History> {
  const world = new World(plan.seed, { breakage, platform });
  const disturb = async () => {
    await injectFaults(world, plan.steps, startFault);
    world.crashAfterCommits(0);
  };
  const history = await world.play(
    Promise.all([serveClients(world, plan), disturb()]),
    () => [world.object],
    () => checkQuiet(world),
  );
  world.database.close();
  return history;
}

type Shrunk = { plan: Plan; history: History; plays: number };

/** Leaves out steps while the same invariant still breaks. */
export async function shrink(plan: Plan, rule: string, breakage?: Breakage): Promise<Shrunk> {
  let smallest: Shrunk = { plan, history: await play(plan, breakage), plays: 1 };
  let plays = 1;
  for (let size = Math.ceil(plan.steps.length / 2); size >= 1; size = size === 1 ? 0 : size >> 1) {
    let index = 0;
    while (index < smallest.plan.steps.length && plays < playsMax) {
      const steps = smallest.plan.steps.toSpliced(index, size);
      const fewer = { ...smallest.plan, steps };
      const history = await play(fewer, breakage);
      plays++;
      if (history.violation?.rule === rule) smallest = { plan: fewer, history, plays };
      else index += size;
    }
  }
  return { ...smallest, plays };
}

/** What each fault does, and how it ends. */
export const startFault: Record<FaultName, StartFault<World>> = {
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
  "engine is away": ({ engine }) => setFlag(engine, "isUnreachable"),
  "engine refuses": ({ engine }) => setFlag(engine, "refuses"),
  "messages are lost": (world, { size }) => loseMessages(world, 0.05 + size * 0.4),
  "messages are slow": ({ weather }) => setFlag(weather, "isSlow"),
  "bodies are late": ({ weather }) => setFlag(weather, "hasLateBodies"),
  "alarms are late": ({ weather }) => setFlag(weather, "hasLateAlarms"),
};
