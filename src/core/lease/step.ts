/** Steps a lease: applies timeouts, then the event, then offers a free lease to the first waiter. */
import { limits } from "../../protocol/limits.ts";
import { type Deadline, earliest } from "../deadline.ts";
import {
  closeLease,
  completeDrain,
  endLease,
  forgetEndedLeases,
  loseLease,
  releaseLease,
} from "./end.ts";
import { cutLease, pinLease, renewLease, useLease } from "./hold.ts";
import {
  type CallsInFlight,
  doneReply,
  type Lease,
  type LeaseEvent,
  type LeaseStep,
} from "./lease.ts";
import { acquireLease, dropExpiredWaiters, removeWaiter } from "./queue.ts";

export function stepLease(
  before: Lease,
  event: LeaseEvent,
  now: number,
  inFlight: CallsInFlight,
): LeaseStep {
  // A new instance does not know yet which calls run, so it must neither end nor offer a lease.
  if (event.type === "instance") {
    return { lease: { ...before, fence: before.fence + 1 }, reply: doneReply };
  }
  const { lease, reply } = applyEvent(applyTimeouts(before, now, inFlight), event, now, inFlight);
  return { lease: offerLease(lease, now, inFlight), reply };
}

type SettledEvent = Exclude<LeaseEvent, { type: "instance" }>;

function applyEvent(
  lease: Lease,
  event: SettledEvent,
  now: number,
  inFlight: CallsInFlight,
): LeaseStep {
  switch (event.type) {
    case "acquire":
      return acquireLease(lease, event, now, inFlight);
    case "leave":
      return { lease: removeWaiter(lease, event.ticket), reply: doneReply };
    case "renew":
      return renewLease(lease, event.token, event.ttlMs, now);
    case "pin":
      return pinLease(lease, event);
    case "used":
      return useLease(lease, event.token, now);
    case "cut":
      return cutLease(lease, event, now);
    case "release":
      return releaseLease(lease, event.token, event.force, now, inFlight);
    case "take":
      return {
        lease: lease.state.name === "held" ? loseLease(lease, event.reason, now) : lease,
        reply: doneReply,
      };
    case "drained":
      return { lease: completeDrain(lease, event.fence), reply: doneReply };
    case "destroyed":
      return { lease: closeLease(lease, now), reply: doneReply };
    case "tick":
      return { lease, reply: doneReply };
  }
}

/** Ends what has timed out. Repeating it changes nothing. */
export function applyTimeouts(lease: Lease, now: number, inFlight: CallsInFlight): Lease {
  let next = forgetEndedLeases(dropExpiredWaiters(lease, now), now);
  const { state } = next;
  if (state.name === "offered" && now >= state.until) {
    next = { ...next, state: { name: "free" }, waiters: next.waiters.slice(1) };
  }
  if (state.name === "held" && state.returnBy !== undefined && now >= state.returnBy) {
    return loseLease(next, "disconnected", now);
  }
  if (state.name === "held" && inFlight.own === 0) {
    if (state.pinned === true) return next;
    if (state.useBy !== undefined && now >= state.useBy) return endLease(next, "unused", now);
    if (now >= state.expiresAt) return loseLease(next, "expired", now);
  }
  if (state.name === "draining" && now >= state.until) {
    const until = now + limits.leaseDrainCheckMs;
    return { ...next, state: { ...state, replace: true, until } };
  }
  return next;
}

/** Offers a free lease to the first waiter as soon as no calls without the lease are in flight. */
function offerLease(lease: Lease, now: number, inFlight: CallsInFlight): Lease {
  if (lease.state.name !== "free" || lease.waiters.length === 0 || inFlight.others > 0)
    return lease;
  return { ...lease, state: { name: "offered", until: now + limits.leaseOfferMs } };
}

export function leaseDeadline(lease: Lease, inFlight: CallsInFlight): Deadline | undefined {
  const { state, waiters } = lease;
  const all: Deadline[] = [];
  if (state.name === "offered") all.push({ at: state.until, why: "offer timeout" });
  if (state.name === "draining") all.push({ at: state.until, why: "drain timeout" });
  if (state.name === "held" && state.returnBy !== undefined) {
    all.push({ at: state.returnBy, why: "reconnect timeout" });
  }
  if (state.name === "held" && state.pinned === undefined && inFlight.own === 0) {
    all.push({ at: state.expiresAt, why: "lease expiry" });
    if (state.useBy !== undefined) all.push({ at: state.useBy, why: "first-use timeout" });
  }
  for (const [at, waiter] of waiters.entries()) {
    if (at === 0 && state.name === "offered") continue;
    all.push({ at: Math.min(waiter.until, waiter.pollBy), why: "waiter timeout" });
  }
  return earliest(all);
}
