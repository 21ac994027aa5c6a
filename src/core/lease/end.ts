/**
 * Owns how a lease ends: let go, or lost and drained; and for how long it is remembered.
 * Does not own what time ends (step.ts), nor telling the agent: `draining` asks for that.
 */
import { BerthError } from "../../protocol/errors.ts";
import { limits } from "../../protocol/limits.ts";
import { type LeaseStep, refuse } from "./event.ts";
import { lostBy } from "./hold.ts";
import type { Busy, Ended, EndReason, Lease, LossReason } from "./lease.ts";

export function release(
  lease: Lease,
  token: string,
  force: boolean,
  now: number,
  busy: Busy,
): LeaseStep {
  const { state, ended } = lease;
  if (state.name !== "held" || state.grant.token !== token) {
    const past = ended.findLast((one) => one.token === token);
    if (past?.reason === "released") {
      const drains = state.name === "draining" && past === ended.at(-1);
      return { lease, reply: { released: drains ? "draining" : "released" } };
    }
    return refuse(lease, lostBy(lease, token));
  }
  if (busy.own === 0) {
    return { lease: end(lease, "released", now), reply: { released: "released" } };
  }
  if (!force) {
    return refuse(
      lease,
      new BerthError("lease_busy", `${busy.own} calls of this lease are still running.`, {
        hint: "Wait for them, or release with ?force=true to end them.",
        facts: { running: busy.own },
      }),
    );
  }
  // It gave the lease up itself: asked again, that is what it is told.
  return { lease: lose(lease, "forced", now, "released"), reply: { released: "draining" } };
}

/** The fence grows at once; who is next waits until the agent has confirmed it. */
export function lose(
  lease: Lease,
  reason: LossReason,
  now: number,
  told: EndReason = reason,
): Lease {
  if (lease.state.name !== "held") return lease;
  const { holder } = lease.state.grant;
  const fence = lease.fence + 1;
  return {
    ...end(lease, told, now),
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

export function drained(lease: Lease, fence: number): Lease {
  if (lease.state.name !== "draining" || fence < lease.state.fence) return lease;
  return { ...lease, state: { name: "free" } };
}

/** It ended with nothing of it running. */
export function end(lease: Lease, reason: EndReason, now: number): Lease {
  if (lease.state.name !== "held") return lease;
  const { token, ticket } = lease.state.grant;
  const ended: Ended[] = [...lease.ended, { token, ticket, reason, at: now }];
  return {
    ...lease,
    state: { name: "free" },
    ended: ended.slice(-limits.leaseEndedMax),
  };
}

export function closed(lease: Lease, now: number): Lease {
  const held = lease.state.name === "held" ? end(lease, "destroyed", now) : lease;
  return { ...held, state: { name: "free" }, waiters: [], fence: held.fence + 1 };
}

export function forgetEnded(lease: Lease, now: number): Lease {
  const [oldest] = lease.ended;
  if (oldest === undefined || now < oldest.at + limits.leaseEndedMs) return lease;
  return { ...lease, ended: lease.ended.filter(({ at }) => now < at + limits.leaseEndedMs) };
}
