/**
 * Shrinks a failure: leaves out steps while the same invariant still breaks.
 */
import type { Breakage } from "./breakages.ts";
import { type History, play } from "./history.ts";
import type { Plan } from "./script.ts";

const playsMax = 400;

export type Shrunk = { plan: Plan; history: History; plays: number };

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
