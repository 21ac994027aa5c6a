/** Checks the invariants in every reachable state of a plan. See moves.ts for what can happen. */
import { explore, pathTo, type Seen } from "../search.ts";
import { type Bounds, type Hole, movesOf } from "./moves.ts";
import { firstWorld, keyOf, normal, type World } from "./world.ts";

export function explorePlans(names: readonly string[], bounds: Bounds, hole?: Hole) {
  const found = { committed: 0, aborted: 0 };
  const searched = explore<World>({
    first: firstWorld(names),
    statesMax: 600_000,
    movesOf: (world) =>
      movesOf(world, bounds, hole).map(({ name, to }) => ({ name, to: normal(to) })),
    keyOf,
    check(here, moves) {
      const outcomes = new Set(Object.values(here.world.outcomes));
      if (outcomes.has("committed")) found.committed += 1;
      if (outcomes.has("aborted")) found.aborted += 1;
      if (moves.every(({ name }) => isDisturbance(name))) atRest(here);
    },
    violation,
  });
  return { ...searched, ...found };
}

function violation(before: World, { members, outcomes, plan }: World): string | undefined {
  const byRun = new Map<string, Set<string>>();
  for (const [about, outcome] of Object.entries(outcomes)) {
    const [run = ""] = about.split(" ");
    byRun.set(run, (byRun.get(run) ?? new Set()).add(outcome));
  }
  for (const [run, said] of byRun) {
    if (said.has("committed") && said.has("aborted")) return `run ${run} is half committed`;
    if (said.has("committed") && said.has("failed")) return `run ${run} left somebody behind`;
    if (said.has("rolled_back") && said.has("aborted")) return `run ${run} is half rolled back`;
  }
  for (const [name, { participant, saved, tree, wasBroken, lease }] of Object.entries(members)) {
    const was = before.members[name]?.participant?.committed ?? null;
    const is = participant?.committed ?? null;
    if (was !== null && (is === null || is.run < was.run)) return `${name} lost a commit`;
    if (is !== null && saved[is.checkpoint] === undefined)
      return `${name} lost its committed files`;
    if (is !== null && is.run !== was?.run && saved[is.checkpoint] !== tree && !wasBroken) {
      return `${name} changed between its vote and its commit`;
    }
    if (is !== null && is.run > plan.newestRun) return `${name} committed a run that never was`;
    if (participant?.phase.name === "over" && lease?.startsWith("run "))
      return `${name} still has a lease`;
  }
  return undefined;
}

/** When nothing is pending, no lease is held, only the last commit is stored, and no run is open. */
function atRest(here: Seen<World>): void {
  const { plan, members } = here.world;
  if (plan.run !== null) throw new Error(`the run never ends: ${pathTo(here)}`);
  for (const [name, { participant, lease, saved }] of Object.entries(members)) {
    if (participant?.phase.name !== "over" || lease !== null) {
      throw new Error(`${name} is still held: ${pathTo(here)}`);
    }
    const kept = Object.keys(saved).filter((id) => id !== participant.committed?.checkpoint);
    if (kept.length > 0) throw new Error(`${name} keeps ${kept}: ${pathTo(here)}`);
  }
}

function isDisturbance(name: string): boolean {
  return name.startsWith("work in") || name.startsWith("the lease of");
}
