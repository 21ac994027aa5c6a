/** Checks the invariants in every reachable state of the lease, and that each comes to rest. See moves.ts for the moves. */
import { askDrain, type Move, movesOf, passTime } from "./moves.ts";
import { explore, pathTo, type Seen } from "./search.ts";
import { firstWorld, keyOf, normal, type World } from "./world.ts";

export function exploreLeases(clients: readonly string[]) {
  const found = { held: 0, draining: 0 };
  const quiet = [new Set<string>(), new Set<string>()] as const;
  const searched = explore<World>({
    first: firstWorld,
    statesMax: 500_000,
    movesOf: (world) => movesOf(world, clients),
    keyOf,
    check(here, moves) {
      const { name } = here.world.lease.state;
      if (name === "held" || name === "draining") found[name] += 1;
      comesToRest(here, moves, true, quiet[0]);
      comesToRest(here, moves, false, quiet[1]);
    },
    violation,
  });
  return { ...searched, ...found };
}

function violation(_before: World, { agent, lease }: World): string | undefined {
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
  here: Seen<World>,
  moves: readonly Move[],
  drains: boolean,
  quiet: Set<string>,
): void {
  const path: string[] = [];
  const late = here.world.drains.length + here.world.confirmations.length > 0;
  const lost = { drains: [], confirmations: [] };
  const from = drains || !late ? here.world : normal({ ...here.world, ...lost }, 0);
  for (let world = from, key = keyOf(world); !quiet.has(key); key = keyOf(world)) {
    if (path.includes(key)) throw new Error(`it turns in a circle: ${pathTo(here)}`);
    path.push(key);
    const next = onward(world, world === here.world ? moves : movesOf(world, []), drains);
    if (next === undefined) {
      if (!isAtRest(world)) throw new Error(`somebody waits for ever: ${pathTo(here)}`);
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
