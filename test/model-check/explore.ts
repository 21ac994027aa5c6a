/**
 * Explores every reachable state breadth first, and checks the invariants in each. A violation is reported with
 * the shortest path to it. See moves.ts for what can happen.
 */
import { askDrain, type Move, movesOf, passTime } from "./moves.ts";
import { firstWorld, keyOf, normal, type World } from "./world.ts";

const statesMax = 500_000;

export type Explored = { states: number; transitions: number; held: number; draining: number };

type Seen = { world: World; from: Seen | undefined; by: string };

export function explore(clients: readonly string[]): Explored {
  const first: Seen = { world: firstWorld, from: undefined, by: "" };
  const seen = new Map<string, Seen>([[keyOf(firstWorld), first]]);
  const found: Explored = { states: 0, transitions: 0, held: 0, draining: 0 };
  const quiet = [new Set<string>(), new Set<string>()] as const;
  for (const here of seen.values()) {
    found.states += 1;
    if (here.world.lease.state.name === "held") found.held += 1;
    if (here.world.lease.state.name === "draining") found.draining += 1;
    const moves = movesFrom(here, clients);
    comesToRest(here, moves, true, quiet[0]);
    comesToRest(here, moves, false, quiet[1]);
    for (const { name, to } of moves) {
      found.transitions += 1;
      const key = keyOf(to);
      if (seen.has(key)) continue;
      if (seen.size >= statesMax) throw new Error(`more than ${statesMax} states`);
      const next = { world: to, from: here, by: name };
      seen.set(key, next);
      const broken = violation(to);
      if (broken !== undefined) throw new Error(`${broken}: ${wayTo(next)}`);
    }
  }
  return found;
}

function movesFrom(here: Seen, clients: readonly string[]): Move[] {
  try {
    return movesOf(here.world, clients);
  } catch (thrown) {
    throw new Error(`a move fails: ${wayTo(here)}`, { cause: thrown });
  }
}

function violation({ agent, lease }: World): string | undefined {
  const grants = new Set(agent.running.map(({ grant }) => grant));
  if (grants.size > 1) return "work of two runs at once";
  if (lease.fence < agent.fence) return "the agent has seen a fence that was never given";
  return undefined;
}

/**
 * Without further calls, each state must come to rest: nobody waits, nothing runs, the lease is free.
 * That holds for an agent that `drains` and for one that never confirms a drain.
 */
function comesToRest(
  here: Seen,
  moves: readonly Move[],
  drains: boolean,
  quiet: Set<string>,
): void {
  const path: string[] = [];
  const late = here.world.drains.length + here.world.confirmations.length > 0;
  const lost = { drains: [], confirmations: [] };
  const from = drains || !late ? here.world : normal({ ...here.world, ...lost }, 0);
  for (let world = from, key = keyOf(world); !quiet.has(key); key = keyOf(world)) {
    if (path.includes(key)) throw new Error(`it turns in a circle: ${wayTo(here)}`);
    path.push(key);
    const next = onward(world, world === here.world ? moves : movesOf(world, []), drains);
    if (next === undefined) {
      if (!isAtRest(world)) throw new Error(`somebody waits for ever: ${wayTo(here)}`);
      break;
    }
    world = next.to;
  }
  for (const key of path) quiet.add(key);
}

/** The next step that needs no client. */
function onward(world: World, moves: readonly Move[], drains: boolean): Move | undefined {
  const next = moves.find(({ name }) => calls.has(name) || (drains && drain.has(name)));
  if (next !== undefined || !world.known) return next;
  if (world.calls.length > 0) return moves.find(({ name }) => name === "a fresh instance");
  const ask = drains && world.agent.drain === 0 ? askDrain(world)[0] : undefined;
  const replaced = drains ? undefined : moves.find(({ name }) => name === "replace the container");
  return ask ?? replaced ?? passTime(world)[0];
}

const calls = new Set([
  "the agent says what runs",
  "an old first word arrives",
  "a start arrives",
  "a start is refused",
  "an old start is refused",
  "work ends",
]);
const drain = new Set(["the drain arrives", "nothing is left", "the confirmation arrives"]);

function isAtRest(world: World): boolean {
  const { state, waiters } = world.lease;
  return state.name === "free" && waiters.length === 0 && world.agent.running.length === 0;
}

function wayTo(here: Seen): string {
  const steps: string[] = [];
  for (let step: Seen | undefined = here; step?.from !== undefined; step = step.from)
    steps.unshift(step.by);
  return steps.join(" > ");
}
