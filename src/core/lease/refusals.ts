/**
 * Owns the words in which a lease is refused: who has it, since when, until when, how many wait.
 */
import { BerthError, type ErrorFacts } from "../../protocol/errors.ts";
import { limits } from "../../protocol/limits.ts";
import type { Busy, EndReason, Lease } from "./lease.ts";

/** For an `acquire` that has no patience. */
export function notGranted(lease: Lease, busy: Busy): BerthError {
  if (lease.state.name === "free" && lease.waiters.length === 0) {
    return new BerthError("lease_pending", `${busy.others} calls of others are still running.`, {
      hint: "Give waitMs or queueMs to wait for them.",
      facts: { running: busy.others, waiting: 0 },
    });
  }
  return leaseHeld(lease);
}

/** For a gated call without the lease's token, and for an `acquire` that has no patience. */
export function leaseHeld(lease: Lease): BerthError {
  const { state, waiters } = lease;
  const waiting = waiters.length;
  if (state.name === "held") {
    const { holder, acquiredAt } = state.grant;
    return new BerthError("lease_held", `${holder} holds the lease.`, {
      hint: "Wait with Berth-Wait-Ms, or queue for the lease.",
      facts: {
        holder,
        acquiredAt: iso(acquiredAt),
        expiresAt: iso(state.expiresAt),
        waiting,
      },
    });
  }
  const facts: ErrorFacts = { waiting };
  if (state.name === "draining") facts.holder = state.holder;
  const [next] = waiters;
  if (next !== undefined) facts.next = next.holder;
  const message =
    state.name === "draining"
      ? `The lease of ${state.holder} was lost; what it started is being ended.`
      : `${waiting} wait for the lease.`;
  return new BerthError("lease_pending", message, {
    hint: "Wait with Berth-Wait-Ms, or queue for the lease.",
    facts,
  });
}

export function leaseLost(reason: EndReason | "unknown"): BerthError {
  return new BerthError("lease_lost", `The lease has ended: ${reason}.`, {
    hint: "Acquire a new one.",
    facts: { reason },
  });
}

export function waitTimedOut(lease: Lease): BerthError {
  const { facts } = leaseHeld(lease);
  return new BerthError("lease_wait_timeout", "The lease was not granted in time.", {
    hint: "Queue longer (queueMs), or ask the holder.",
    facts,
  });
}

export function queueFull(lease: Lease, holder: string): BerthError | undefined {
  const { waiters } = lease;
  if (waiters.length >= limits.leaseWaitersMax) {
    return new BerthError("queue_full", `${waiters.length} already wait for the lease.`, {
      facts: { waitersMax: limits.leaseWaitersMax },
    });
  }
  const ofHolder = waiters.filter((waiter) => waiter.holder === holder).length;
  if (ofHolder < limits.leaseWaitersOfHolderMax) return undefined;
  return new BerthError("queue_full", `${ofHolder} of ${holder} already wait for the lease.`, {
    hint: "Name each holder by itself.",
    facts: { waitersOfHolderMax: limits.leaseWaitersOfHolderMax },
  });
}

function iso(ms: number): string {
  return new Date(ms).toISOString();
}
