/**
 * Reads the events of a sandbox: one page, or a stream that continues.
 */
import type { EventsPage, EventsQuery } from "../../protocol/event.ts";
import { limits } from "../../protocol/limits.ts";
import { EventStreams } from "../shared/event-stream.ts";
import type { SandboxActor } from "./actor.ts";
import { read } from "./event-log.ts";

export function page(actor: SandboxActor, query: EventsQuery): EventsPage {
  return read(actor.host, query.after, query.limit);
}

export function streams(actor: SandboxActor): EventStreams {
  return new EventStreams({
    read(after) {
      // The rows were deleted with the sandbox.
      if (actor.existing === undefined) return { gap: false, events: [] };
      const { events, gap } = read(actor.host, after, limits.eventsPageMax);
      return {
        gap,
        events: events.map((event) => ({ seq: event.seq, type: event.event.type, data: event })),
      };
    },
    async waitForChange(waitMs) {
      const changed = await actor.waiters.waitForChange(waitMs);
      // A follower keeps the object awake, so the probe notices a dead container although nobody calls.
      if (!changed) actor.link.probeInBackground();
      return changed;
    },
    hasEnded: () =>
      actor.existing === undefined || actor.existing.sandbox.state.name === "destroyed",
  });
}
