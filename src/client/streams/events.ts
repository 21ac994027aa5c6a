/**
 * Owns following what happens, to one sandbox or to all of a tenant: each event once and in order over cut connections.
 * Does not own how a stream is read and opened again (live-stream.ts).
 */
import type { TenantEvents } from "../../protocol/directory.ts";
import { BerthError } from "../../protocol/error-codes.ts";
import type { SandboxEventView } from "../../protocol/event.ts";
import { follow, type Message, type StreamOptions } from "./stream.ts";

/** Events between this number and the next one that is told are no longer kept. */
export type EventGap = { type: "gap"; after: number };
export type SandboxEvent = ({ type: "event" } & SandboxEventView) | EventGap;
export type TenantEvent = ({ type: "event" } & TenantEvents["events"][number]) | EventGap;

export type FollowEventsOptions = StreamOptions & {
  /** The `seq` of the last event that is known; 0 is the oldest that is kept. */
  after?: number;
};

type Source = {
  streamEvents(query: { after: number; signal: AbortSignal }): Promise<AsyncIterable<Uint8Array>>;
};

/** Those of one sandbox end when it is destroyed and all is told; those of a tenant never do. */
export function followEvents<Event extends SandboxEvent | TenantEvent>(
  source: Source,
  { after = 0, ...options }: FollowEventsOptions = {},
): AsyncGenerator<Event, void, undefined> {
  let cursor = after;
  const followed = {
    open: (signal: AbortSignal) => source.streamEvents({ after: cursor, signal }),
    read({ event, id, data }: Message): Event | undefined {
      if (event === "gap") return { type: "gap", after: cursor } as Event;
      if (id === undefined) return undefined;
      cursor = Number(id);
      return { type: "event", ...data } as unknown as Event;
    },
    isOver: ({ event }: Message) => event === "over",
    outOfReach: () => outOfReach(cursor),
  };
  return follow(followed, options);
}

function outOfReach(seq: number): BerthError {
  return new BerthError("unavailable", "The events cannot be reached any more.", {
    hint: "Follow them again after this number.",
    facts: { seq },
  });
}
