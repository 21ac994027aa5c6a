/**
 * Explores every reachable state of a plan breadth first, and checks the invariants in each. A violation is reported with
 * the shortest path to it. See moves.ts for what can happen.
 */
import { type Bounds, type Hole, type Move, movesOf } from "./moves.ts";
import { firstWorld, keyOf, normal, type World } from "./world.ts";

const statesMax = 600_000;

export type Explored = {
  states: number;
  transitions: number;
  committed: number;
  aborted: number;
  back: number;
};

type Seen = { world: World; from: Seen | undefined; by: string };

export function explorePlans(names: readonly string[], bounds: Bounds, hole?: Hole): Explored {
  const start = firstWorld(names);
  const first: Seen = { world: start, from: undefined, by: "" };
  const seen = new Map<string, Seen>([[keyOf(start), first]]);
  const found: Explored = { states: 0, transitions: 0, committed: 0, aborted: 0, back: 0 };
  for (const here of seen.values()) {
    found.states += 1;
    count(here.world, found);
    const moves = movesFrom(here, bounds, hole);
    if (moves.every(({ name }) => isDisturbance(name))) atRest(here);
    for (const { name, to: into } of moves) {
      found.transitions += 1;
      const to = normal(into);
      const next = { world: to, from: here, by: name };
      // Checked for each step, not each state: a state may be allowed although one step must not lead to it.
      const broken = violation(here.world, to);
      if (broken !== undefined) throw new Error(`${broken}: ${wayTo(next)}`);
      const key = keyOf(to);
      if (seen.has(key)) continue;
      if (seen.size >= statesMax) throw new Error(`more than ${statesMax} states`);
      seen.set(key, next);
    }
  }
  return found;
}

function movesFrom(here: Seen, bounds: Bounds, hole: Hole | undefined): Move[] {
  try {
    return movesOf(here.world, bounds, hole);
  } catch (thrown) {
    throw new Error(`a move fails: ${wayTo(here)}`, { cause: thrown });
  }
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
function atRest(here: Seen): void {
  const { plan, members } = here.world;
  if (plan.run !== null) throw new Error(`the run never ends: ${wayTo(here)}`);
  for (const [name, { participant, lease, saved }] of Object.entries(members)) {
    if (participant?.phase.name !== "over" || lease !== null) {
      throw new Error(`${name} is still held: ${wayTo(here)}`);
    }
    const kept = Object.keys(saved).filter((id) => id !== participant.committed?.checkpoint);
    if (kept.length > 0) throw new Error(`${name} keeps ${kept}: ${wayTo(here)}`);
  }
}

function isDisturbance(name: string): boolean {
  return name.startsWith("work in") || name.startsWith("the lease of");
}

function count({ outcomes }: World, found: Explored): void {
  const said = new Set(Object.values(outcomes));
  if (said.has("committed")) found.committed += 1;
  if (said.has("aborted")) found.aborted += 1;
  if (said.has("rolled_back")) found.back += 1;
}

function wayTo(here: Seen): string {
  const steps: string[] = [];
  for (let step: Seen | undefined = here; step?.from !== undefined; step = step.from)
    steps.unshift(step.by);
  return steps.join(" > ");
}
