/**
 * Owns the step of a lease: what time has ended is settled, then what was asked is done, then a free one is offered.
 * Does not own the queue (queue.ts), the holder (hold.ts), the end (end.ts), nor calls in flight: they are an argument.
 */
import { limits } from "../../protocol/limits.ts";
import { closed, drained, end, forgetEnded, lose, release } from "./end.ts";
import { done, type LeaseEvent, type LeaseStep } from "./event.ts";
import { pin, renew } from "./hold.ts";
import type { Busy, Lease } from "./lease.ts";
import { acquire, dropWaiters, without } from "./queue.ts";

export function stepLease(before: Lease, event: LeaseEvent, now: number, busy: Busy): LeaseStep {
  // It does not know yet what runs: it must neither end a lease that a call keeps alive nor offer one.
  if (event.type === "instance") {
    return { lease: { ...before, fence: before.fence + 1 }, reply: done };
  }
  const { lease, reply } = decide(settle(before, now, busy), event, now, busy);
  return { lease: offer(lease, now, busy), reply };
}

type Decided = Exclude<LeaseEvent, { type: "instance" }>;

function decide(lease: Lease, event: Decided, now: number, busy: Busy): LeaseStep {
  switch (event.type) {
    case "acquire":
      return acquire(lease, event, now, busy);
    case "leave":
      return { lease: without(lease, event.ticket), reply: done };
    case "renew":
      return renew(lease, event.token, event.ttlMs, now);
    case "pin":
      return pin(lease, event);
    case "used":
      return renew(lease, event.token, undefined, now);
    case "release":
      return release(lease, event.token, event.force, now, busy);
    case "take":
      return {
        lease: lease.state.name === "held" ? lose(lease, event.reason, now) : lease,
        reply: done,
      };
    case "drained":
      return { lease: drained(lease, event.fence), reply: done };
    case "destroyed":
      return { lease: closed(lease, now), reply: done };
    case "tick":
      return { lease, reply: done };
  }
}

/** What time has ended. Exactly once: afterwards it is no longer there to end. */
export function settle(lease: Lease, now: number, busy: Busy): Lease {
  let next = forgetEnded(dropWaiters(lease, now), now);
  const { state } = next;
  if (state.name === "offered" && now >= state.until) {
    next = { ...next, state: { name: "free" }, waiters: next.waiters.slice(1) };
  }
  if (state.name === "held" && busy.own === 0) {
    if (state.pinned === true) return next;
    if (state.useBy !== undefined && now >= state.useBy) return end(next, "unused", now);
    if (now >= state.expiresAt) return lose(next, "expired", now);
  }
  if (state.name === "draining" && now >= state.until) {
    const until = now + limits.leaseDrainLookMs;
    return { ...next, state: { ...state, replace: true, until } };
  }
  return next;
}

/** A free lease goes to whoever came first, once nothing of anybody else's is in flight. */
function offer(lease: Lease, now: number, busy: Busy): Lease {
  if (lease.state.name !== "free" || lease.waiters.length === 0 || busy.others > 0) return lease;
  return { ...lease, state: { name: "offered", until: now + limits.leaseOfferMs } };
}
