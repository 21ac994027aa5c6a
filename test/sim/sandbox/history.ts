/** Plays one plan from start to quiet, and shrinks a failing one. */
import type { History } from "../simulation.ts";
import { injectFaults } from "../steps.ts";
import type { Breakage } from "./breakages.ts";
import { serveClients } from "./clients.ts";
import { startFault } from "./faults.ts";
import { checkQuiet } from "./quiet.ts";
import type { Plan } from "./script.ts";
import { World } from "./world.ts";

const playsMax = 400;

export async function play(plan: Plan, breakage?: Breakage): Promise<History> {
  const world = new World(plan.seed, breakage);
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
