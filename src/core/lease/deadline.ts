/**
 * Says when a lease must be checked next, and why.
 */
import { type Deadline, earliest } from "../deadline.ts";
import type { CallsInFlight, Lease } from "./lease.ts";

export function leaseDeadline(lease: Lease, busy: CallsInFlight): Deadline | undefined {
  const { state, waiters } = lease;
  const all: Deadline[] = [];
  if (state.name === "offered")
    all.push({ at: state.until, why: "the offered lease must be taken" });
  if (state.name === "draining") all.push({ at: state.until, why: "the drain must be confirmed" });
  if (state.name === "held" && state.pinned === undefined && busy.own === 0) {
    all.push({ at: state.expiresAt, why: "the lease expires" });
    if (state.useBy !== undefined) all.push({ at: state.useBy, why: "the lease must be used" });
  }
  for (const [at, waiter] of waiters.entries()) {
    if (at === 0 && state.name === "offered") continue;
    all.push({ at: Math.min(waiter.until, waiter.pollBy), why: "a waiter must ask again" });
  }
  return earliest(all);
}
