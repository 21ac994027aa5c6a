/** The event rows of one sandbox: appended in the commit they describe, bounded in number, read in order, with gaps reported. */
import type { EventData, EventsPage, EventsQuery, SandboxEventView } from "../../protocol/event.ts";
import { limits } from "../../protocol/limits.ts";
import { EventStreams } from "../shared/event-stream.ts";
import { takeFitting } from "../shared/page-size.ts";
import type { SandboxActor } from "./actor.ts";
import type { Host } from "./host.ts";

type EventRow = { seq: number; at: number; data: string };

/** Pruning once per hundred events saves a DELETE per event. */
const pruneEvery = 100;

export function append(host: Host, events: readonly EventData[], now: number): void {
  for (const event of events) {
    const [row] = host.sql<{ seq: number }>(
      "INSERT INTO event (at, data) VALUES (?, ?) RETURNING seq",
      now,
      JSON.stringify(event),
    );
    const seq = row?.seq ?? 0;
    if (seq % pruneEvery === 0)
      host.sql("DELETE FROM event WHERE seq <= ?", seq - limits.eventsMax);
  }
}

/** When the newest event was appended: some commits write nothing else. */
export function newestAt(host: Host): number {
  const [newest] = host.sql<{ at: number }>("SELECT at FROM event ORDER BY seq DESC LIMIT 1");
  return newest?.at ?? 0;
}

/** The state and metadata events after `after`, oldest first: the Directory keeps these for the tenant's event list. */
export function readTenantEvents(host: Host, after: number, limit: number): SandboxEventView[] {
  const rows = host.sql<EventRow>(
    `SELECT seq, at, data FROM event
      WHERE seq > ? AND data ->> 'type' IN ('state', 'metadata') ORDER BY seq LIMIT ?`,
    after,
    limit,
  );
  return rows.map(viewRow);
}

export function page(
  { host }: SandboxActor,
  { after, limit }: Pick<EventsQuery, "after" | "limit">,
): EventsPage {
  const keys = host.sql<{ seq: number; bytes: number }>(
    "SELECT seq, octet_length(data) AS bytes FROM event WHERE seq > ? ORDER BY seq LIMIT ?",
    after,
    limit,
  );
  const shown = takeFitting(keys, limits.eventsPageBytesMax);
  const last = shown.at(-1);
  const rows = host.sql<EventRow>(
    "SELECT seq, at, data FROM event WHERE seq > ? AND seq <= ? ORDER BY seq",
    after,
    last?.seq ?? after,
  );
  const more = keys.length === limit || shown.length < keys.length;
  const [oldest] = host.sql<{ seq: number | null }>("SELECT min(seq) AS seq FROM event");
  return {
    events: rows.map(viewRow),
    nextCursor: more && last !== undefined ? String(last.seq) : null,
    gap: (oldest?.seq ?? 1) > after + 1,
  };
}

export function streams(actor: SandboxActor): EventStreams {
  return new EventStreams({
    read(after) {
      // The rows were deleted with the sandbox.
      if (actor.existing === undefined) return { gap: false, events: [] };
      const { events, gap } = page(actor, { after, limit: limits.eventsPageMax });
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

function viewRow({ seq, data, ...row }: EventRow): SandboxEventView {
  return { seq, at: new Date(row.at).toISOString(), event: JSON.parse(data) as EventData };
}
