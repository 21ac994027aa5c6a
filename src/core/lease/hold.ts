/** Grants, renews, extends and pins a lease. See end.ts for its end. */
import { limits } from "../../protocol/limits.ts";
import { doneReply, type Lease, type LeaseEvent, type LeaseStep, refuseStep } from "./lease.ts";
import { leaseLostFor } from "./refusals.ts";

export function grantLease(
  lease: Lease,
  to: { ticket: string; token: string; holder: string; ttlMs: number },
  now: number,
  waited: boolean,
): Lease {
  const { ticket, token, holder, ttlMs } = to;
  const fence = lease.fence + 1;
  return {
    ...lease,
    fence,
    state: {
      name: "held",
      grant: { ticket, token, holder, ttlMs, fence, acquiredAt: now },
      expiresAt: now + ttlMs,
      ...(waited ? { useBy: now + limits.leaseUseMs } : {}),
    },
  };
}

export function renewLease(
  lease: Lease,
  token: string,
  ttlMs: number | undefined,
  now: number,
): LeaseStep {
  const { state } = lease;
  if (state.name !== "held" || state.grant.token !== token) {
    return refuseStep(lease, leaseLostFor(lease, token));
  }
  return { lease: extendLease(lease, now, ttlMs), reply: { granted: true } };
}

/** Unlike a renewal, a call does not end the grace of a cut connection: it may have been sent before the cut. */
export function useLease(lease: Lease, token: string, now: number): LeaseStep {
  const step = renewLease(lease, token, undefined, now);
  const { state } = step.lease;
  const returnBy = lease.state.name === "held" ? lease.state.returnBy : undefined;
  if (state.name !== "held" || returnBy === undefined) return step;
  return { ...step, lease: { ...step.lease, state: { ...state, returnBy } } };
}

/**
 * Keeps the lease for its holder, which may come back: nobody else gets it and the fence stays, so its commands go on
 * undisturbed. A repeated cut does not prolong the grace.
 */
export function cutLease(
  lease: Lease,
  { token, graceMs }: Extract<LeaseEvent, { type: "cut" }>,
  now: number,
): LeaseStep {
  const { state } = lease;
  if (state.name !== "held" || state.grant.token !== token || state.pinned === true) {
    return { lease, reply: doneReply };
  }
  const returnBy = Math.min(state.returnBy ?? Number.POSITIVE_INFINITY, now + graceMs);
  const expiresAt = Math.max(state.expiresAt, returnBy);
  return { lease: { ...lease, state: { ...state, expiresAt, returnBy } }, reply: doneReply };
}

/** Each use extends the lease by its whole `ttlMs`. */
export function extendLease(lease: Lease, now: number, ttlMs?: number): Lease {
  if (lease.state.name !== "held") return lease;
  const { grant, expiresAt, pinned } = lease.state;
  const renewed = ttlMs === undefined ? grant : { ...grant, ttlMs };
  // A call with the token never shortens the lease, only a renewal with its own `ttlMs` does.
  const until = now + renewed.ttlMs;
  return {
    ...lease,
    state: {
      name: "held",
      grant: renewed,
      expiresAt: ttlMs === undefined ? Math.max(expiresAt, until) : until,
      ...(pinned === undefined ? {} : { pinned }),
    },
  };
}

export function pinLease(
  lease: Lease,
  { token, until }: Extract<LeaseEvent, { type: "pin" }>,
): LeaseStep {
  const { state } = lease;
  if (state.name !== "held" || state.grant.token !== token) {
    return refuseStep(lease, leaseLostFor(lease, token));
  }
  const pinned: Lease["state"] = {
    name: "held",
    grant: state.grant,
    expiresAt: until,
    pinned: true,
  };
  return { lease: { ...lease, state: pinned }, reply: { granted: true } };
}
