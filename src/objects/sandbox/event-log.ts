/**
 * The event rows of one sandbox: appended in the commit they describe, bounded in number, read in order, with gaps
 * reported.
 */
import type { EventData, EventsPage, SandboxEventView } from "../../protocol/event.ts";
import { limits } from "../../protocol/limits.ts";
import type { Host } from "./host.ts";

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

/**
 * The state and metadata events after `after`, oldest first: the Directory keeps these for the tenant's event list.
 */
export function readTenantEvents(host: Host, after: number, limit: number): SandboxEventView[] {
  const rows = host.sql<{ seq: number; at: number; data: string }>(
    `SELECT seq, at, data FROM event
      WHERE seq > ? AND data ->> 'type' IN ('state', 'metadata') ORDER BY seq LIMIT ?`,
    after,
    limit,
  );
  return rows.map(viewRow);
}

export function read(host: Host, after: number, limit: number): EventsPage {
  const rows = host.sql<{ seq: number; at: number; data: string }>(
    "SELECT seq, at, data FROM event WHERE seq > ? ORDER BY seq LIMIT ?",
    after,
    limit,
  );
  const events = rows.map(viewRow);
  const [oldest] = host.sql<{ seq: number | null }>("SELECT min(seq) AS seq FROM event");
  const last = events.at(-1);
  return {
    events,
    nextCursor: events.length === limit && last !== undefined ? String(last.seq) : null,
    gap: (oldest?.seq ?? 1) > after + 1,
  };
}

function viewRow(row: { seq: number; at: number; data: string }): SandboxEventView {
  const event = JSON.parse(row.data) as EventData;
  return { seq: row.seq, at: new Date(row.at).toISOString(), event };
}
