/** Shows a lease to callers, and its changes as events. Only the holder sees the token. */
import type { EventData } from "../../protocol/event.ts";
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

export function leaseEventsBetween(
  before: Lease,
  after: Lease,
  by: string | undefined,
): EventData[] {
  const events: EventData[] = [];
  const was = before.state;
  const is = after.state;
  const held = was.name === "held" ? was.grant : undefined;
  const holds = is.name === "held" ? is.grant : undefined;
  if (held !== undefined && held.token !== holds?.token) {
    const reason = after.ended.findLast((ended) => ended.token === held.token)?.reason;
    events.push({
      type: "lease",
      what: is.name === "draining" ? "lost" : "ended",
      fence: held.fence,
      holder: held.holder,
      ...(reason === undefined ? {} : { reason }),
      ...(by === undefined ? {} : { by }),
    });
  }
  if (was.name === "draining" && is.name !== "draining") {
    events.push({ type: "lease", what: "drained", fence: after.fence, holder: was.holder });
  }
  if (holds !== undefined && held?.token !== holds.token) {
    events.push({ type: "lease", what: "granted", fence: holds.fence, holder: holds.holder });
  }
  return events;
}
