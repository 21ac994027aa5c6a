/** Explores every reachable state of a model, breadth first. A violation is reported with the shortest path to it. */

export type Move<World> = { name: string; to: World };

/** A state with the move by which the search first reached it. */
export type Seen<World> = { world: World; from: Seen<World> | undefined; by: string };

type Model<World> = {
  first: World;
  statesMax: number;
  movesOf(world: World): Move<World>[];
  keyOf(world: World): string;
  /** Called once for each state. Throws if it must not be reached. */
  check(here: Seen<World>, moves: readonly Move<World>[]): void;
  /** Returns what a step must not do. */
  violation(before: World, after: World): string | undefined;
};

export function explore<World>(model: Model<World>): { states: number; transitions: number } {
  const { first, statesMax, keyOf } = model;
  const seen = new Map<string, Seen<World>>([
    [keyOf(first), { world: first, from: undefined, by: "" }],
  ]);
  const found = { states: 0, transitions: 0 };
  for (const here of seen.values()) {
    found.states += 1;
    const moves = movesFrom(model, here);
    model.check(here, moves);
    for (const { name, to } of moves) {
      found.transitions += 1;
      const next = { world: to, from: here, by: name };
      // Checked for each step, not each state: a state may be allowed although one step must not lead to it.
      const broken = model.violation(here.world, to);
      if (broken !== undefined) throw new Error(`${broken}: ${pathTo(next)}`);
      const key = keyOf(to);
      if (seen.has(key)) continue;
      if (seen.size >= statesMax) throw new Error(`more than ${statesMax} states`);
      seen.set(key, next);
    }
  }
  return found;
}

function movesFrom<World>({ movesOf }: Model<World>, here: Seen<World>): Move<World>[] {
  try {
    return movesOf(here.world);
  } catch (thrown) {
    throw new Error(`a move fails: ${pathTo(here)}`, { cause: thrown });
  }
}

export function pathTo<World>(here: Seen<World>): string {
  const steps: string[] = [];
  for (let step: Seen<World> | undefined = here; step?.from !== undefined; step = step.from) {
    steps.unshift(step.by);
  }
  return steps.join(" > ");
}
