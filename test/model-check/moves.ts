/**
 * The moves of the model: clients, time, messages, and a restart of the object. The decisions of the lease are the real
 * ones.
 */

import type { LeaseEvent } from "../../src/core/lease/lease.ts";
import { checkLease } from "../../src/core/lease/refusals.ts";
import { leaseDeadline, stepLease } from "../../src/core/lease/step.ts";
import {
  type Agent,
  askToDrain,
  type Call,
  freshAgent,
  hasDrained,
  raise,
  start,
} from "./agent.ts";
import type { Move as SearchMove } from "./search.ts";
import { callsInFlightOf, normal, type World, without } from "./world.ts";

const ttlMs = 15_000;

export type Move = SearchMove<World>;

/** Bounds of the search. A third message makes it ten times as long. */
const callsMax = 2;
const messagesMax = 2;

/** Everything that may happen next; each move is one step of one part. */
export function movesOf(world: World, clients: readonly string[]): Move[] {
  return [
    ...(world.known ? decisions(world, clients) : []),
    ...deliveries(world),
    ...finishes(world),
    ...lookAgain(world),
  ];
}

/** The calls that the object accepts once it knows what runs. */
function decisions(world: World, clients: readonly string[]): Move[] {
  const { state } = world.lease;
  const moves: Move[] = clients.flatMap((client) => [
    { name: `${client} acquires`, to: acquire(world, client) },
    { name: `${client} leaves`, to: decide(world, { type: "leave", ticket: client }) },
  ]);
  moves.push(...begin(world, undefined));
  const [past] = world.lease.ended;
  if (past !== undefined) moves.push(...begin(world, past.token));
  if (state.name === "held") {
    const { token } = state.grant;
    moves.push(...begin(world, token));
    moves.push({ name: "release", to: decide(world, { type: "release", token, force: false }) });
    moves.push({
      name: "forced release",
      to: decide(world, { type: "release", token, force: true }),
    });
    moves.push({ name: "break", to: decide(world, { type: "take", reason: "broken" }) });
  }
  moves.push(...askDrain(world), ...replace(world), ...passTime(world));
  return moves;
}

function acquire(world: World, client: string): World {
  const { ended } = world.lease;
  // A client whose lease has ended uses a new ticket.
  const lease = { ...world.lease, ended: ended.filter(({ ticket }) => ticket !== client) };
  const used = ended.find(({ ticket }) => ticket === client)?.token;
  const token = used === `${client} 1` ? `${client} 2` : `${client} 1`;
  return decide(
    { ...world, lease },
    { type: "acquire", ticket: client, token, holder: client, ttlMs, queueMs: 1 },
  );
}

/** A gated call: decided, remembered, and sent. */
function begin(world: World, token: string | undefined): Move[] {
  if (world.calls.length >= callsMax || isFull(world)) return [];
  const settled = decide(world, token === undefined ? { type: "tick" } : { type: "used", token });
  if (checkLease(settled.lease, token) !== undefined) return [];
  const { state, fence } = settled.lease;
  const grant = token !== undefined && state.name === "held" ? state.grant.fence : 0;
  const call: Call = { fence, grant };
  const to = { ...settled, calls: [...settled.calls, call], starts: [...settled.starts, call] };
  return [{ name: `begin ${token ?? "without a lease"}`, to: normal(to, 0) }];
}

export function askDrain(world: World): Move[] {
  const { state, fence } = world.lease;
  if (state.name !== "draining" || world.drains.length > 0 || isFull(world)) return [];
  return [{ name: "ask to drain", to: normal({ ...world, drains: [...world.drains, fence] }, 0) }];
}

/** Without a confirmation the container is replaced, and all requests to it are lost. */
function replace(world: World): Move[] {
  const { state, fence } = world.lease;
  if (state.name !== "draining" || !state.replace) return [];
  const fresh = { raises: [], drains: [], confirmations: [], agent: freshAgent };
  const replaced = { ...world, ...fresh, calls: [], starts: [] };
  return [{ name: "replace the container", to: decide(replaced, { type: "drained", fence }) }];
}

export function passTime(world: World): Move[] {
  const deadline = leaseDeadline(world.lease, callsInFlightOf(world));
  if (deadline === undefined || deadline.at === Number.POSITIVE_INFINITY) return [];
  return [{ name: deadline.why, to: decide(world, { type: "tick" }, deadline.at) }];
}

function deliveries(world: World): Move[] {
  const { agent } = world;
  const moves: Move[] = [];
  for (const call of new Set(world.starts)) {
    const rest = { ...world, starts: without(world.starts, call) };
    const started = start(agent, call);
    if (started !== undefined) {
      moves.push({ name: "a start arrives", to: normal(having(rest, started), 0) });
    } else if (call.fence >= world.since) moves.push(...ended(rest, call, "a start is refused"));
    else moves.push({ name: "an old start is refused", to: normal(rest, 0) });
  }
  for (const fence of new Set(world.raises)) {
    const raised = having(world, raise(agent, fence));
    const heard = { ...raised, raises: without(world.raises, fence) };
    // A response to an earlier instance reaches nobody; one to the present instance may be lost.
    if (fence === world.lease.fence && !world.known) {
      const knowing = { ...heard, known: true, calls: heard.agent.running };
      moves.push({ name: "the agent says what runs", to: decide(knowing, { type: "tick" }) });
      moves.push({ name: "its answer is lost", to: normal(raised, 0) });
    } else moves.push({ name: "an old first word arrives", to: normal(heard, 0) });
  }
  for (const fence of new Set(world.drains)) {
    const rest = { ...world, drains: without(world.drains, fence) };
    const to = normal(having(rest, askToDrain(agent, fence)), 0);
    moves.push({ name: "the drain arrives", to });
  }
  return [...moves, ...confirm(world)];
}

function confirm(world: World): Move[] {
  const { agent, confirmations } = world;
  const moves: Move[] = [];
  if (agent.drain > 0 && hasDrained(agent) && confirmations.length === 0 && !isFull(world)) {
    const done = { ...world, agent: { ...agent, drain: 0 } };
    const to = { ...done, confirmations: [...confirmations, agent.drain] };
    moves.push({ name: "nothing is left", to: normal(to, 0) });
    moves.push({ name: "the confirmation is lost", to: normal(done, 0) });
  }
  for (const fence of new Set(confirmations)) {
    const rest = { ...world, confirmations: without(confirmations, fence) };
    // An instance that does not know yet what runs ignores this.
    const calls = rest.calls.filter((call) => call.fence >= fence);
    const to = world.known ? decide({ ...rest, calls }, { type: "drained", fence }) : rest;
    moves.push({ name: "the confirmation arrives", to: normal(to, 0) });
  }
  return moves;
}

function finishes(world: World): Move[] {
  const { agent } = world;
  return [...new Set(agent.running)].flatMap((call) => {
    const rest = { ...world, agent: { ...agent, running: without(agent.running, call) } };
    return [
      ...ended(rest, call, "work ends"),
      { name: "work ends, its answer is lost", to: normal(rest, 0) },
    ];
  });
}

/** The end of a call first extends its lease, because it still counts then, and then stops counting. */
function ended(world: World, call: Call, name: string): Move[] {
  const mine = world.calls.find(({ fence, grant }) => fence === call.fence && grant === call.grant);
  if (!world.known || mine === undefined) return [{ name, to: normal(world, 0) }];
  const { state } = world.lease;
  const own = state.name === "held" && state.grant.fence === call.grant;
  const used = own ? decide(world, { type: "used", token: state.grant.token }, 0, false) : world;
  const to = decide({ ...used, calls: without(used.calls, mine) }, { type: "tick" });
  return [{ name, to }];
}

/** A restart: the old instance's memory is lost, but its requests are still in flight. */
function lookAgain(world: World): Move[] {
  if (world.raises.length > 0 || isFull(world)) return [];
  const woken = decide({ ...world, calls: [] }, { type: "instance" }, 0, false);
  const { fence } = woken.lease;
  const to = { ...woken, known: false, since: fence, raises: [...woken.raises, fence] };
  return [{ name: "a fresh instance", to: normal(to, 0) }];
}

function decide(world: World, event: LeaseEvent, now = 0, renumber = true): World {
  const { lease } = stepLease(world.lease, event, now, callsInFlightOf(world));
  const to = { ...world, lease };
  return renumber ? normal(to, now) : to;
}

function isFull({ starts, raises, drains, confirmations }: World): boolean {
  return starts.length + raises.length + drains.length + confirmations.length >= messagesMax;
}

/** Checked here and not in states, because states have renumbered fences. */
function having(world: World, agent: Agent): World {
  if (agent.fence < world.agent.fence) throw new Error("the fence went down");
  return { ...world, agent };
}
