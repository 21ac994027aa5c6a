/** Grants, renews, extends and pins a lease. See end.ts for its end. */
import { limits } from "../../protocol/limits.ts";
import { type Lease, type LeaseEvent, type LeaseStep, refuseStep } from "./lease.ts";
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
