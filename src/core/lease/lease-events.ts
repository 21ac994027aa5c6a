/**
 * Derives the events of a lease from the difference between two states.
 */
import type { EventData } from "../../protocol/event.ts";
import type { Lease } from "./lease.ts";

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
