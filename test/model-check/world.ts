/**
 * The state of the model: the lease as a row, the memory of the object's instance, and messages in flight. States that
 * differ only in the clock or in numbers that nobody compares are the same state.
 */
import type { CallsInFlight, Lease } from "../../src/core/lease/lease.ts";
import { newLease } from "../../src/core/lease/lease.ts";
import { type Agent, type Call, freshAgent } from "./agent.ts";

export type World = {
  lease: Lease;
  /** The instance has the response to its first request to the agent. Until then it decides nothing. */
  known: boolean;
  /** The fence of that first request: requests below it come from an earlier instance. */
  since: number;
  /** In flight, as far as the present instance knows. */
  calls: readonly Call[];
  /** Requests in flight to the agent, also those of earlier instances. Each may take any time. */
  starts: readonly Call[];
  raises: readonly number[];
  drains: readonly number[];
  /** Responses in flight. */
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

/** The calls in flight that the instance knows, as the lease expects them. */
export function callsInFlightOf({ lease, calls }: World): CallsInFlight {
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

/** The same state with fences renumbered in order, the present time at 0, and unordered lists sorted. */
export function normal(world: World, now: number): World {
  const { lease, calls, starts, raises, drains, confirmations, agent } = world;
  const { state } = lease;
  const fences = new Set([0, lease.fence, world.since, agent.fence, agent.drain]);
  for (const fence of [...raises, ...drains, ...confirmations]) fences.add(fence);
  for (const list of [calls, starts, agent.running]) {
    for (const { fence, grant } of list) fences.add(fence).add(grant);
  }
  if (state.name === "held") fences.add(state.grant.fence);
  if (state.name === "draining") fences.add(state.fence);
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
    agent: { fence: rank(agent.fence), drain: rank(agent.drain), running: ranked(agent.running) },
  };
}

/** The reason of a loss is only shown and decides nothing. */
const lossReason = "broken";

function normalLease(lease: Lease, now: number, rank: (fence: number) => number): Lease {
  const { state, waiters, ended } = lease;
  return {
    state: normalState(state, now, rank),
    // Waiters poll often enough, or leave with a move of their own.
    waiters: waiters.map((waiter) => ({
      ...waiter,
      seq: 0,
      since: 0,
      until: Number.POSITIVE_INFINITY,
      pollBy: Number.POSITIVE_INFINITY,
    })),
    // Only the latest ended lease matters here, whose token is known to be invalid.
    ended: ended.slice(-1).map((item) => ({ ...item, reason: lossReason, at: 0 })),
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
        reason: lossReason,
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
