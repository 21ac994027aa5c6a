/** Decides whether a gated call may pass, and writes the errors of leases with the facts that a caller needs. */
import { BerthError, type ErrorFacts } from "../../protocol/errors.ts";
import { limits } from "../../protocol/limits.ts";
import type { CallsInFlight, EndReason, Lease } from "./lease.ts";

/** For an `acquire` that does not wait. */
export function notGrantedError(lease: Lease, inFlight: CallsInFlight): BerthError {
  if (lease.state.name === "free" && lease.waiters.length === 0) {
    return new BerthError(
      "lease_pending",
      `${inFlight.others} calls of other callers are still running.`,
      {
        hint: "Pass `waitMs` or `queueMs` to wait for them.",
        facts: { running: inFlight.others, waiting: 0 },
      },
    );
  }
  return leaseHeldError(lease);
}

/** For a gated call without the lease's token, and for an `acquire` that does not wait. */
function leaseHeldError(lease: Lease): BerthError {
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
      ? `The lease of ${state.holder} was lost, and its work is being ended.`
      : `${waiting} callers wait for the lease.`;
  return new BerthError("lease_pending", message, {
    hint: "Wait with Berth-Wait-Ms, or queue for the lease.",
    facts,
  });
}

export function leaseLostError(reason: EndReason | "unknown"): BerthError {
  return new BerthError("lease_lost", `The lease has ended: ${reason}.`, {
    hint: "Acquire a new lease.",
    facts: { reason },
  });
}

/** For a caller with the token of an earlier lease. */
export function leaseLostFor(lease: Lease, token: string): BerthError {
  return leaseLostError(
    lease.ended.findLast((ended) => ended.token === token)?.reason ?? "unknown",
  );
}

export function waitTimeoutError(lease: Lease): BerthError {
  const { facts } = leaseHeldError(lease);
  return new BerthError("lease_wait_timeout", "The lease was not granted in time.", {
    hint: "Wait longer with `queueMs`, or ask the holder to release it.",
    facts,
  });
}

export function queueFullError(lease: Lease, holder: string): BerthError | undefined {
  const { waiters } = lease;
  if (waiters.length >= limits.leaseWaitersMax) {
    return new BerthError("queue_full", `${waiters.length} callers already wait for the lease.`, {
      facts: { waitersMax: limits.leaseWaitersMax },
    });
  }
  const ofHolder = waiters.filter((waiter) => waiter.holder === holder).length;
  if (ofHolder < limits.leaseWaitersOfHolderMax) return undefined;
  return new BerthError(
    "queue_full",
    `${ofHolder} calls of ${holder} already wait for the lease.`,
    {
      hint: "Use a holder name of its own for each caller.",
      facts: { waitersOfHolderMax: limits.leaseWaitersOfHolderMax },
    },
  );
}

function iso(ms: number): string {
  return new Date(ms).toISOString();
}

/** Undefined if the call may pass. `token` is the caller's lease token, if it sent one. */
export function checkLease(lease: Lease, token: string | undefined): BerthError | undefined {
  const { state, waiters } = lease;
  if (token !== undefined) {
    return state.name === "held" && state.grant.token === token
      ? undefined
      : leaseLostFor(lease, token);
  }
  return state.name === "free" && waiters.length === 0 ? undefined : leaseHeldError(lease);
}
