/**
 * Owns the queue for a lease: who comes is granted it, or gets a place and keeps it by asking again.
 * Does not own when the turn is offered (step.ts).
 */
import { limits } from "../../protocol/limits.ts";
import { type LeaseEvent, type LeaseStep, refuse } from "./event.ts";
import { grant, used } from "./hold.ts";
import type { Busy, Lease, Waiter } from "./lease.ts";
import { leaseLost, notGranted, queueFull } from "./refusals.ts";

type Acquire = Extract<LeaseEvent, { type: "acquire" }>;

export function acquire(lease: Lease, event: Acquire, now: number, busy: Busy): LeaseStep {
  const { state, waiters } = lease;
  if (state.name === "held" && state.grant.ticket === event.ticket) {
    return { lease: used(lease, now), reply: { granted: true } };
  }
  const past = lease.ended.findLast((ended) => ended.ticket === event.ticket);
  if (past !== undefined) return refuse(lease, leaseLost(past.reason));
  const position = waiters.findIndex((waiter) => waiter.ticket === event.ticket);
  if (position >= 0) return again(lease, position, event, now);
  if (state.name === "free" && waiters.length === 0 && busy.others === 0) {
    return { lease: grant(lease, event, now, false), reply: { granted: true } };
  }
  if (event.queueMs === 0) return refuse(lease, notGranted(lease, busy));
  const full = queueFull(lease, event.holder);
  if (full !== undefined) return refuse(lease, full);
  const waiter: Waiter = {
    seq: lease.nextSeq,
    ticket: event.ticket,
    holder: event.holder,
    ttlMs: event.ttlMs,
    since: now,
    until: now + event.queueMs,
    pollBy: now + limits.leasePollMs,
  };
  return {
    lease: { ...lease, waiters: [...waiters, waiter], nextSeq: lease.nextSeq + 1 },
    reply: { queued: { position: waiters.length } },
  };
}

/** A waiter asks again: it keeps its place, or takes its turn. */
function again(lease: Lease, position: number, event: Acquire, now: number): LeaseStep {
  const waiter = lease.waiters[position];
  if (waiter === undefined) throw new Error("a waiter stands at its position");
  if (position === 0 && lease.state.name === "offered") {
    const { ticket, holder, ttlMs } = waiter;
    const rest = { ...lease, waiters: lease.waiters.slice(1) };
    const granted = grant(rest, { ticket, holder, ttlMs, token: event.token }, now, true);
    return { lease: granted, reply: { granted: true } };
  }
  const waiters = lease.waiters.with(position, { ...waiter, pollBy: now + limits.leasePollMs });
  return { lease: { ...lease, waiters }, reply: { queued: { position } } };
}

export function dropWaiters(lease: Lease, now: number): Lease {
  const [head] = lease.waiters;
  // While the turn is offered its own limit counts, not the head's polling.
  const offered = lease.state.name === "offered" ? head : undefined;
  const stays = (waiter: Waiter) =>
    waiter === offered || (now < waiter.until && now < waiter.pollBy);
  if (lease.waiters.every(stays)) return lease;
  return { ...lease, waiters: lease.waiters.filter(stays) };
}

export function without(lease: Lease, ticket: string): Lease {
  const at = lease.waiters.findIndex((waiter) => waiter.ticket === ticket);
  if (at < 0) return lease;
  const state =
    at === 0 && lease.state.name === "offered" ? { name: "free" as const } : lease.state;
  return { ...lease, state, waiters: lease.waiters.toSpliced(at, 1) };
}
