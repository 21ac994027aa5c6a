/**
 * Decides whether a gated call may pass: with the token of the present lease, or without a token while nobody has or waits
 * for the lease. See sandbox/admit.ts for the state of the container.
 */
import type { BerthError } from "../../protocol/errors.ts";
import type { Lease } from "./lease.ts";
import { leaseHeldError, leaseLostError } from "./refusals.ts";

/** Undefined if the call may pass. `token` is the caller's lease token, if it sent one. */
export function checkLease(lease: Lease, token: string | undefined): BerthError | undefined {
  const { state, waiters, ended } = lease;
  if (token !== undefined) {
    if (state.name === "held" && state.grant.token === token) return undefined;
    return leaseLostError(ended.findLast((other) => other.token === token)?.reason ?? "unknown");
  }
  return state.name === "free" && waiters.length === 0 ? undefined : leaseHeldError(lease);
}
