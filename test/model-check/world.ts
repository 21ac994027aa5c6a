/**
 * Owns the world of the model: the lease as a row, what the object's instance remembers, messages on their way.
 * States that differ only in numbers nobody compares, or in the hour, are one state.
 */
import type { CallsInFlight, Lease } from "../../src/core/lease/lease.ts";
import { newLease } from "../../src/core/lease/lease.ts";
import { type Agent, type Call, freshAgent } from "./agent.ts";

export type World = {
  lease: Lease;
  /** The instance has the agent's answer to its first word. Until then it decides nothing. */
  known: boolean;
  /** The fence of that first word: what was sent below it, an earlier instance sent. */
  since: number;
  /** In flight, as far as the present instance knows. */
  calls: readonly Call[];
  /** On their way to the agent, those of forgotten instances too. Each may take any time. */
  starts: readonly Call[];
  raises: readonly number[];
  drains: readonly number[];
  /** On their way back. */
  confirmations: readonly number[];
  agent: Agent;
};

export const firstWorld: World = {
  lease: newLease,
  known: true,
  since: 0,
  calls: [],
  starts: [],
  raises: [],
  drains: [],
  confirmations: [],
  agent: freshAgent,
};

/** What the instance knows of calls in flight, as the lease wants it told. */
export function busyOf({ lease, calls }: World): CallsInFlight {
  const held = lease.state.name === "held" ? lease.state.grant.fence : undefined;
  const own = calls.filter(({ grant }) => grant === held).length;
  return { own, others: calls.length - own };
}

export function without<T>(all: readonly T[], item: T): readonly T[] {
  const index = all.indexOf(item);
  return index < 0 ? all : all.toSpliced(index, 1);
}

export function keyOf(world: World): string {
  return JSON.stringify(world);
}

/** The same world with fences renumbered in order, the present at 0, and what has no order sorted. */
export function normal(world: World, now: number): World {
  const { lease, calls, starts, raises, drains, confirmations, agent } = world;
  const { state } = lease;
  const fences = new Set([
    lease.fence,
    world.since,
    agent.fence,
    agent.drain,
    ...raises,
    ...drains,
  ]);
  for (const fence of confirmations) fences.add(fence);
  for (const list of [calls, starts, agent.running]) {
    for (const { fence, grant } of list) fences.add(fence).add(grant);
  }
  if (state.name === "held") fences.add(state.grant.fence);
  if (state.name === "draining") fences.add(state.fence);
  fences.add(0);
  const order = [...fences].sort((a, b) => a - b);
  const rank = (fence: number) => order.indexOf(fence);
  const ranks = (list: readonly number[]) => list.map(rank).sort((a, b) => a - b);
  const ranked = (list: readonly Call[]) =>
    list
      .map(({ fence, grant }) => ({ fence: rank(fence), grant: rank(grant) }))
      .sort((a, b) => a.fence - b.fence || a.grant - b.grant);
  return {
    lease: normalLease(lease, now, rank),
    known: world.known,
    since: rank(world.since),
    calls: ranked(calls),
    starts: ranked(starts),
    raises: ranks(raises),
    drains: ranks(drains),
    confirmations: ranks(confirmations),
    agent: {
      fence: rank(agent.fence),
      drain: rank(agent.drain),
      running: ranked(agent.running),
    },
  };
}

/** Why a lease was lost is told, and decides nothing. */
const told = "broken";

function normalLease(lease: Lease, now: number, rank: (fence: number) => number): Lease {
  const { state, waiters, ended } = lease;
  return {
    state: normalState(state, now, rank),
    // They ask often enough, or leave by a move of theirs.
    waiters: waiters.map((waiter) => ({
      ...waiter,
      seq: 0,
      since: 0,
      until: Number.POSITIVE_INFINITY,
      pollBy: Number.POSITIVE_INFINITY,
    })),
    // Only the latest matters here: whose token is known to be no longer good.
    ended: ended.slice(-1).map((item) => ({ ...item, reason: told, at: 0 })),
    fence: rank(lease.fence),
    nextSeq: 0,
  };
}

function normalState(
  state: Lease["state"],
  now: number,
  rank: (fence: number) => number,
): Lease["state"] {
  switch (state.name) {
    case "free":
      return state;
    case "offered":
      return { name: "offered", until: state.until - now };
    case "draining":
      return {
        name: "draining",
        fence: rank(state.fence),
        holder: "",
        reason: told,
        since: 0,
        until: state.until - now,
        replace: state.replace,
      };
    case "held": {
      const { grant, expiresAt, useBy } = state;
      return {
        name: "held",
        grant: { ...grant, fence: rank(grant.fence), acquiredAt: 0 },
        expiresAt: expiresAt - now,
        ...(useBy === undefined ? {} : { useBy: useBy - now }),
      };
    }
  }
}
