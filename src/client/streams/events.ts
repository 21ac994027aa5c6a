/**
 * Follows the events of one sandbox or of a tenant: each once and in order, over lost connections. See stream.ts for
 * reading and reconnecting.
 */
import type { TenantEvents } from "../../protocol/directory.ts";
import type { EventsPage, SandboxEventView } from "../../protocol/event.ts";
import { limits } from "../../protocol/limits.ts";
import type { CallOptions } from "../http/request.ts";
import type { SandboxCalls } from "../verbs.ts";
import { connectionLost, follow, type ServerEvent, type StreamOptions } from "./stream.ts";

/** Events after this `seq` and before the next one reported are no longer stored. */
export type EventGap = { type: "gap"; after: number };
/** What `sandbox.events` yields. */
export type SandboxEvent = ({ type: "event" } & SandboxEventView) | EventGap;
/** What `berth.events` yields. */
export type TenantEvent = ({ type: "event" } & TenantEvents["events"][number]) | EventGap;

/** Options of `events`. */
export type FollowEventsOptions = StreamOptions & {
  /** The `seq` of the last event already seen. Default: 0, which is the oldest stored event. */
  after?: number | undefined;
  /** false: ends after the events that are stored. Default: true. */
  follow?: boolean | undefined;
};

type Page = Pick<EventsPage | TenantEvents, "gap" | "nextCursor"> & {
  events: { seq: number }[];
};

type Source = Pick<SandboxCalls, "streamEvents"> & {
  events(query: { after: number; limit: number } & CallOptions): Promise<Page>;
};

/** The events of a sandbox end when it is destroyed and all have been read; those of a tenant never end. */
export function followEvents<Event extends SandboxEvent | TenantEvent>(
  source: Source,
  { after = 0, follow: isFollowing = true, ...options }: FollowEventsOptions = {},
): AsyncGenerator<Event, void, undefined> {
  if (!isFollowing) return readStoredEvents(source, after, options.signal);
  let cursor = after;
  const stream = {
    open: (signal: AbortSignal) => source.streamEvents({ after: cursor, signal }),
    read({ event, id, data }: ServerEvent): Event | undefined {
      if (event === "gap") return { type: "gap", after: cursor } as Event;
      if (id === undefined) return undefined;
      cursor = Number(id);
      return { type: "event", ...data } as unknown as Event;
    },
    isOver: ({ event }: ServerEvent) => event === "over",
    lostError: () =>
      connectionLost("unavailable", "the events", {
        hint: "Follow them again with `after` set to `seq`.",
        facts: { seq: cursor },
      }),
  };
  return follow(stream, options);
}

async function* readStoredEvents<Event>(
  source: Source,
  after: number,
  signal: AbortSignal | undefined,
): AsyncGenerator<Event, void, undefined> {
  for (let cursor = after; ; ) {
    const query = { after: cursor, limit: limits.eventsPageMax, signal };
    const { events, gap, nextCursor } = await source.events(query);
    if (gap) yield { type: "gap", after: cursor } as Event;
    for (const event of events) yield { type: "event", ...event } as Event;
    if (nextCursor === null) return;
    cursor = Number(nextCursor);
  }
}
