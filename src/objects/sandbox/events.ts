/**
 * Owns reading the events of a sandbox: a page, or a stream that goes on.
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
      // Its rows are gone with it.
      if (actor.known === undefined) return { gap: false, events: [] };
      const { events, gap } = read(actor.host, after, limits.eventsPageMax);
      return {
        gap,
        events: events.map((told) => ({ seq: told.seq, type: told.event.type, told })),
      };
    },
    async changed(waitMs) {
      const changed = await actor.watchers.change(waitMs);
      // Who follows keeps the object awake, so a container that dies is told of though nobody calls.
      if (!changed) actor.link.lookBeside();
      return changed;
    },
    isOver: () => actor.known === undefined || actor.known.sandbox.state.name === "destroyed",
  });
}
