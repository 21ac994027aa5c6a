/**
 * Says when a lease must be checked next, and why.
 */
import { type Deadline, earliest } from "../deadline.ts";
import type { CallsInFlight, Lease } from "./lease.ts";

export function leaseDeadline(lease: Lease, inFlight: CallsInFlight): Deadline | undefined {
  const { state, waiters } = lease;
  const all: Deadline[] = [];
  if (state.name === "offered") all.push({ at: state.until, why: "offer timeout" });
  if (state.name === "draining") all.push({ at: state.until, why: "drain timeout" });
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
