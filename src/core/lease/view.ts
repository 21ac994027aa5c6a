/**
 * Shows a lease to callers: to everybody without token and ticket, to its holder with the token.
 */
import type { LeaseGranted, LeaseView } from "../../protocol/lease.ts";
import { limits } from "../../protocol/limits.ts";
import type { Lease } from "./lease.ts";

export function viewLease(lease: Lease, now: number): LeaseView {
  const { state, fence, waiters } = lease;
  const shown = waiters.slice(0, limits.leaseWaitersShownMax);
  return {
    state: state.name,
    fence,
    ...(state.name === "held"
      ? {
          holder: state.grant.holder,
          acquiredAt: new Date(state.grant.acquiredAt).toISOString(),
          expiresAt: new Date(state.expiresAt).toISOString(),
        }
      : {}),
    ...(state.name === "draining" ? { holder: state.holder, reason: state.reason } : {}),
    waiters: shown.map(({ holder, since }) => ({ holder, waitingMs: Math.max(0, now - since) })),
    waiterCount: waiters.length,
  };
}

/** Only for the response to the holder itself. */
export function viewGrant(lease: Lease): LeaseGranted {
  if (lease.state.name !== "held") throw new Error("the lease is not held");
  const { grant, expiresAt } = lease.state;
  return {
    token: grant.token,
    fence: grant.fence,
    holder: grant.holder,
    acquiredAt: new Date(grant.acquiredAt).toISOString(),
    expiresAt: new Date(expiresAt).toISOString(),
  };
}
