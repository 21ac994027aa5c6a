/** Runs the queue for a lease: a caller gets the lease at once, or a place that it keeps by polling. */
import { limits } from "../../protocol/limits.ts";
import { extendLease, grantLease } from "./hold.ts";
import {
  type CallsInFlight,
  type Lease,
  type LeaseEvent,
  type LeaseStep,
  refuseStep,
  type Waiter,
} from "./lease.ts";
import { leaseLostError, notGrantedError, queueFullError } from "./refusals.ts";

type Acquire = Extract<LeaseEvent, { type: "acquire" }>;

export function acquireLease(
  lease: Lease,
  event: Acquire,
  now: number,
  inFlight: CallsInFlight,
): LeaseStep {
  const { state, waiters } = lease;
  if (state.name === "held" && state.grant.ticket === event.ticket) {
    return { lease: extendLease(lease, now), reply: { granted: true } };
  }
  const past = lease.ended.findLast((ended) => ended.ticket === event.ticket);
  if (past !== undefined) return refuseStep(lease, leaseLostError(past.reason));
  const position = waiters.findIndex((waiter) => waiter.ticket === event.ticket);
  if (position >= 0) return pollQueue(lease, position, event, now);
  if (state.name === "free" && waiters.length === 0 && inFlight.others === 0) {
    return { lease: grantLease(lease, event, now, false), reply: { granted: true } };
  }
  if (event.queueMs === 0) return refuseStep(lease, notGrantedError(lease, inFlight));
  const full = queueFullError(lease, event.holder);
  if (full !== undefined) return refuseStep(lease, full);
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

/** The poll of a waiter keeps its place, or takes the lease if it is its turn. */
function pollQueue(lease: Lease, position: number, event: Acquire, now: number): LeaseStep {
  const waiter = lease.waiters[position];
  if (waiter === undefined) throw new Error("no waiter at this position");
  if (position === 0 && lease.state.name === "offered") {
    const { ticket, holder, ttlMs } = waiter;
    const rest = { ...lease, waiters: lease.waiters.slice(1) };
    const granted = grantLease(rest, { ticket, holder, ttlMs, token: event.token }, now, true);
    return { lease: granted, reply: { granted: true } };
  }
  const waiters = lease.waiters.with(position, { ...waiter, pollBy: now + limits.leasePollMs });
  return { lease: { ...lease, waiters }, reply: { queued: { position } } };
}

export function dropExpiredWaiters(lease: Lease, now: number): Lease {
  const [head] = lease.waiters;
  // During an offer the offer's own deadline applies to the first waiter, not its polling deadline.
  const offered = lease.state.name === "offered" ? head : undefined;
  const isWaiting = (waiter: Waiter) =>
    waiter === offered || (now < waiter.until && now < waiter.pollBy);
  if (lease.waiters.every(isWaiting)) return lease;
  return { ...lease, waiters: lease.waiters.filter(isWaiting) };
}

export function removeWaiter(lease: Lease, ticket: string): Lease {
  const position = lease.waiters.findIndex((waiter) => waiter.ticket === ticket);
  if (position < 0) return lease;
  const state =
    position === 0 && lease.state.name === "offered" ? { name: "free" as const } : lease.state;
  return { ...lease, state, waiters: lease.waiters.toSpliced(position, 1) };
}
