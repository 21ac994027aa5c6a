/**
 * Owns a lease while it is held: granted, used, renewed, pinned. Does not own how it ends (end.ts).
 */
import type { BerthError } from "../../protocol/errors.ts";
import { limits } from "../../protocol/limits.ts";
import { type LeaseEvent, type LeaseStep, refuse } from "./event.ts";
import type { Lease } from "./lease.ts";
import { leaseLost } from "./refusals.ts";

export function grant(
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

export function renew(
  lease: Lease,
  token: string,
  ttlMs: number | undefined,
  now: number,
): LeaseStep {
  const { state } = lease;
  if (state.name !== "held" || state.grant.token !== token) {
    return refuse(lease, lostBy(lease, token));
  }
  return { lease: used(lease, now, ttlMs), reply: { granted: true } };
}

/** Whoever uses a lease has it for another whole `ttlMs`. */
export function used(lease: Lease, now: number, ttlMs?: number): Lease {
  if (lease.state.name !== "held") return lease;
  const { grant, expiresAt, pinned } = lease.state;
  const renewed = ttlMs === undefined ? grant : { ...grant, ttlMs };
  // A call with the token never shortens what a renewal gave.
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

export function pin(
  lease: Lease,
  { token, until }: Extract<LeaseEvent, { type: "pin" }>,
): LeaseStep {
  const { state } = lease;
  if (state.name !== "held" || state.grant.token !== token) {
    return refuse(lease, lostBy(lease, token));
  }
  const pinned: Lease["state"] = {
    name: "held",
    grant: state.grant,
    expiresAt: until,
    pinned: true,
  };
  return { lease: { ...lease, state: pinned }, reply: { granted: true } };
}

export function lostBy(lease: Lease, token: string): BerthError {
  return leaseLost(lease.ended.findLast((ended) => ended.token === token)?.reason ?? "unknown");
}
