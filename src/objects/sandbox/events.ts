/**
 * Owns reading the events of a sandbox: a page, or a stream that goes on (server-sent events).
 * A reader who is gone is noticed at the next heartbeat; one who is slow holds nobody up.
 */
import { BerthError } from "../../protocol/errors.ts";
import type { EventsPage, EventsQuery } from "../../protocol/event.ts";
import { limits } from "../../protocol/limits.ts";
import type { SandboxActor } from "./actor.ts";
import { read } from "./event-log.ts";

export function page(actor: SandboxActor, query: EventsQuery): EventsPage {
  return read(actor.host, query.after, query.limit);
}

export class EventStreams {
  readonly #actor: SandboxActor;
  #open = 0;

  constructor(actor: SandboxActor) {
    this.#actor = actor;
  }

  follow(after: number): ReadableStream<Uint8Array> {
    if (this.#open >= limits.eventFollowersMax) {
      throw new BerthError("too_many", `${this.#open} already follow the events.`, {
        facts: { followersMax: limits.eventFollowersMax },
      });
    }
    this.#open++;
    const actor = this.#actor;
    const encoder = new TextEncoder();
    let cursor = after;
    let first = true;
    let closed = false;
    const close = () => {
      if (!closed) this.#open--;
      closed = true;
    };
    return new ReadableStream<Uint8Array>({
      async pull(controller) {
        while (!closed) {
          const { events, gap } = read(actor.host, cursor, limits.eventsPageMax);
          const lines: string[] = [];
          if (gap && (first || events.length > 0)) lines.push("event: gap\ndata: {}\n\n");
          for (const { seq, at, event } of events) {
            lines.push(
              `id: ${seq}\nevent: ${event.type}\ndata: ${JSON.stringify({ seq, at, event })}\n\n`,
            );
          }
          cursor = events.at(-1)?.seq ?? cursor;
          if (first && lines.length === 0) lines.push(": hello\n\n");
          first = false;
          if (lines.length > 0) return controller.enqueue(encoder.encode(lines.join("")));
          if (!(await actor.watchers.change(limits.eventHeartbeatMs))) {
            return controller.enqueue(encoder.encode(": still here\n\n"));
          }
          if (actor.known === undefined) {
            close();
            return controller.close();
          }
        }
      },
      cancel: close,
    });
  }
}
