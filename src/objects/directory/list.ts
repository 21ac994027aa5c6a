/** Lists a tenant's sandboxes and events from rows, which hold what the sandboxes have last reported. */
import type {
  Counts,
  ListedSandbox,
  SandboxesPage,
  SandboxesQuery,
  TenantEvents,
} from "../../protocol/directory.ts";
import type { EventsQuery } from "../../protocol/event.ts";
import { limits } from "../../protocol/limits.ts";
import type { Sandbox } from "../../protocol/sandbox.ts";
import { EventStreams } from "../shared/event-stream.ts";
import type { ObjectHost } from "../shared/host.ts";
import { takeFitting } from "../shared/page-size.ts";
import type { Waiters } from "../shared/waiters.ts";
import { selections } from "./select.ts";

/** The columns by which a page is chosen; they are read from more rows than are shown. */
type PageKey = { id: string; created_at: number; bytes: number };

type ListedRow = { id: string; created_at: number; view: string; as_of: number; current: number };

/** Newest first, as many as fit in one response. `by` is the key whose sandboxes `mine` selects. */
export function listPage(
  host: ObjectHost,
  query: SandboxesQuery,
  by: string | undefined,
): SandboxesPage {
  const keys = selections(host, query, by).flatMap(({ from, where, bindings }) =>
    host.sql<PageKey>(
      `SELECT s.id, s.created_at, octet_length(s.view) AS bytes FROM ${from} WHERE ${where}`,
      ...bindings,
      query.limit + 1,
    ),
  );
  keys.sort(newestFirst);
  const shown = takeFitting(keys.slice(0, query.limit), limits.sandboxesPageBytesMax);
  const last = shown.at(-1);
  const more = keys.length > shown.length && last !== undefined;
  return {
    sandboxes: rowsOf(host, shown).map(toListed),
    nextCursor: more ? `${last.created_at}.${last.id}` : null,
  };
}

function rowsOf(host: ObjectHost, keys: PageKey[]): ListedRow[] {
  const rows = host.sql<ListedRow>(
    `SELECT s.id, s.created_at, s.view, s.as_of,
            EXISTS (SELECT 1 FROM scope p WHERE p.key = s.scope AND p.id = s.id) AS current
       FROM sandbox s WHERE s.id IN (SELECT value FROM json_each(?))`,
    JSON.stringify(keys.map(({ id }) => id)),
  );
  return rows.sort(newestFirst);
}

function newestFirst(
  a: Pick<PageKey, "id" | "created_at">,
  b: Pick<PageKey, "id" | "created_at">,
): number {
  return b.created_at - a.created_at || (a.id < b.id ? 1 : -1);
}

export function countByState(host: ObjectHost): Counts {
  const [unmade] = host.sql<{ n: number }>(
    "SELECT count(*) AS n FROM sandbox WHERE try_at IS NOT NULL AND view IS NULL",
  );
  const [forgotten] = host.sql<{ n: number }>(
    "SELECT count(*) AS n FROM sandbox INDEXED BY sandbox_gone WHERE state = 'destroyed' AND state_since <= ?",
    host.clock() - limits.tombstoneMs,
  );
  // Counts come from the index alone, which has uncreated sandboxes as `starting` and forgotten ones as `destroyed`.
  const hidden: Partial<Record<string, number>> = {
    starting: unmade?.n ?? 0,
    destroyed: forgotten?.n ?? 0,
  };
  const rows = host
    .sql<{ state: string; n: number }>(
      "SELECT state, count(*) AS n FROM sandbox INDEXED BY sandbox_state GROUP BY state",
    )
    .map(({ state, n }) => ({ state, n: n - (hidden[state] ?? 0) }))
    .filter(({ n }) => n > 0);
  const states = Object.fromEntries(rows.map(({ state, n }) => [state, n])) as Counts["states"];
  const total = rows.reduce((sum, { state, n }) => (state === "destroyed" ? sum : sum + n), 0);
  return { states, total };
}

export function listEvents(host: ObjectHost, { after, limit }: EventsQuery): TenantEvents {
  const [newest] = host.sql<{ seq: number | null }>("SELECT max(seq) AS seq FROM event");
  // A cursor above the newest number belongs to rows that were lost.
  const lost = after > (newest?.seq ?? 0);
  const start = lost ? 0 : after;
  const keys = host.sql<{ seq: number; bytes: number }>(
    "SELECT seq, octet_length(data) AS bytes FROM event WHERE seq > ? ORDER BY seq LIMIT ?",
    start,
    limit,
  );
  const shown = takeFitting(keys, limits.eventsPageBytesMax);
  const last = shown.at(-1);
  const rows = host.sql<{ seq: number; at: string; sandbox: string; data: string }>(
    "SELECT seq, at, sandbox, data FROM event WHERE seq > ? AND seq <= ? ORDER BY seq",
    start,
    last?.seq ?? start,
  );
  const more = keys.length === limit || shown.length < keys.length;
  const [oldest] = host.sql<{ seq: number | null }>("SELECT min(seq) AS seq FROM event");
  return {
    events: rows.map(({ data, ...row }) => ({ ...row, event: JSON.parse(data) })),
    nextCursor: more && last !== undefined ? String(last.seq) : null,
    gap: lost || (oldest?.seq ?? 1) > after + 1,
  };
}

export function eventStreams(host: ObjectHost, waiters: Waiters): EventStreams {
  return new EventStreams({
    read(after) {
      const page = listEvents(host, { after, limit: limits.eventsPageMax, follow: "1" });
      return {
        gap: page.gap,
        events: page.events.map((entry) => ({
          seq: entry.seq,
          type: entry.event.type,
          data: entry,
        })),
      };
    },
    waitForChange: (waitMs) => waiters.waitForChange(waitMs),
    hasEnded: () => false,
  });
}

/** All that were created and are not gone. */
export function liveSandboxes(host: ObjectHost): string[] {
  const rows = host.sql<{ id: string }>(
    "SELECT id FROM sandbox WHERE gone = 0 AND view IS NOT NULL",
  );
  return rows.map(({ id }) => id);
}

/** Sandboxes that should have left a transient state by now, starting after the id `after` and wrapping around. */
export function staleSandboxes(
  host: ObjectHost,
  now: number,
  after: string,
  limit: number,
): string[] {
  const rows = host.sql<{ id: string }>(
    `SELECT id FROM sandbox
      WHERE state IN ('starting', 'pausing', 'destroying') AND phase = 'known' AND as_of < ?
      ORDER BY id <= ?, id LIMIT ?`,
    now - limits.staleAfterMs,
    after,
    limit,
  );
  return rows.map(({ id }) => id);
}

/** Sandboxes that were last reported as running before then. */
export function runningBefore(host: ObjectHost, time: number): string[] {
  const rows = host.sql<{ id: string }>(
    "SELECT id FROM sandbox INDEXED BY sandbox_state WHERE state = 'running' AND as_of < ?",
    time,
  );
  return rows.map(({ id }) => id);
}

function toListed({ view, as_of, current }: ListedRow): ListedSandbox {
  const { lease: _lease, ...sandbox } = JSON.parse(view) as Sandbox;
  return { ...sandbox, stateAsOf: new Date(as_of).toISOString(), current: current === 1 };
}
