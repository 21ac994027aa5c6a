/** Ends a lease: released by its holder, or lost and then drained. Ended leases are remembered for a while. */
import { BerthError } from "../../protocol/errors.ts";
import { limits } from "../../protocol/limits.ts";
import {
  type CallsInFlight,
  type EndedLease,
  type EndReason,
  type Lease,
  type LeaseStep,
  type LossReason,
  refuseStep,
} from "./lease.ts";
import { leaseLostFor } from "./refusals.ts";

export function releaseLease(
  lease: Lease,
  token: string,
  force: boolean,
  now: number,
  inFlight: CallsInFlight,
): LeaseStep {
  const { state, ended } = lease;
  if (state.name !== "held" || state.grant.token !== token) {
    const past = ended.findLast((other) => other.token === token);
    if (past?.reason === "released") {
      const drains = state.name === "draining" && past === ended.at(-1);
      return { lease, reply: { released: drains ? "draining" : "released" } };
    }
    return refuseStep(lease, leaseLostFor(lease, token));
  }
  if (inFlight.own === 0) {
    return { lease: endLease(lease, "released", now), reply: { released: "released" } };
  }
  if (!force) {
    return refuseStep(
      lease,
      new BerthError("lease_busy", `${inFlight.own} calls of this lease are still running.`, {
        hint: "Wait for them, or release with ?force=true to end them.",
        facts: { running: inFlight.own },
      }),
    );
  }
  // The holder gave the lease up itself, so a repeated release must succeed.
  return { lease: loseLease(lease, "forced", now, "released"), reply: { released: "draining" } };
}

/** Raises the fence at once; the next holder waits until the agent has confirmed it. */
export function loseLease(
  lease: Lease,
  reason: LossReason,
  now: number,
  shownReason: EndReason = reason,
): Lease {
  if (lease.state.name !== "held") return lease;
  const { holder } = lease.state.grant;
  const fence = lease.fence + 1;
  return {
    ...endLease(lease, shownReason, now),
    fence,
    state: {
      name: "draining",
      fence,
      holder,
      reason,
      since: now,
      until: now + limits.leaseDrainMs,
      replace: false,
    },
  };
}

export function completeDrain(lease: Lease, fence: number): Lease {
  if (lease.state.name !== "draining" || fence < lease.state.fence) return lease;
  return { ...lease, state: { name: "free" } };
}

/** Ends a lease that has no calls in flight. */
export function endLease(lease: Lease, reason: EndReason, now: number): Lease {
  if (lease.state.name !== "held") return lease;
  const { token, ticket } = lease.state.grant;
  const ended: EndedLease[] = [...lease.ended, { token, ticket, reason, at: now }];
  return {
    ...lease,
    state: { name: "free" },
    ended: ended.slice(-limits.leaseEndedMax),
  };
}

export function closeLease(lease: Lease, now: number): Lease {
  const held = lease.state.name === "held" ? endLease(lease, "destroyed", now) : lease;
  return { ...held, state: { name: "free" }, waiters: [], fence: held.fence + 1 };
}

export function forgetEndedLeases(lease: Lease, now: number): Lease {
  const [oldest] = lease.ended;
  if (oldest === undefined || now < oldest.at + limits.leaseEndedMs) return lease;
  return { ...lease, ended: lease.ended.filter((ended) => now < ended.at + limits.leaseEndedMs) };
}
