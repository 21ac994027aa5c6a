/**
 * Owns the question whether a gated call may pass: alone with its lease, or among others while nobody has one.
 * Does not own the container's state (sandbox/admit.ts).
 */
import type { BerthError } from "../../protocol/errors.ts";
import type { Lease } from "./lease.ts";
import { leaseHeld, leaseLost } from "./refusals.ts";

/** Undefined: it may pass. `token` is the caller's, where it has one. */
export function refuseAtGate(lease: Lease, token: string | undefined): BerthError | undefined {
  const { state, waiters, ended } = lease;
  if (token !== undefined) {
    if (state.name === "held" && state.grant.token === token) return undefined;
    return leaseLost(ended.findLast((one) => one.token === token)?.reason ?? "unknown");
  }
  return state.name === "free" && waiters.length === 0 ? undefined : leaseHeld(lease);
}
