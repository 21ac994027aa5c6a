/**
 * Owns lists of a tenant's sandboxes: one page by filters and a cursor, counts by state, events.
 * Asks nobody: what stands here is what sandboxes last said.
 */
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
import type { Place } from "../shared/host.ts";
import type { Watchers } from "../shared/waiters.ts";
import { selections } from "./select.ts";

/** What a page is chosen by: all of it may be read of more rows than are shown. */
type Key = { id: string; created_at: number; bytes: number };

type Listed = { id: string; created_at: number; view: string; as_of: number; current: number };

/** Newest first, as many as one answer carries. `by`: whose a list of "mine" is. */
export function page(place: Place, query: SandboxesQuery, by: string | undefined): SandboxesPage {
  const keys = selections(place, query, by).flatMap(({ from, where, bindings }) =>
    place.sql<Key>(
      `SELECT s.id, s.created_at, octet_length(s.view) AS bytes FROM ${from} WHERE ${where}`,
      ...bindings,
      query.limit + 1,
    ),
  );
  keys.sort(newestFirst);
  const shown = fitting(keys.slice(0, query.limit));
  const last = shown.at(-1);
  const more = keys.length > shown.length && last !== undefined;
  return {
    sandboxes: rowsOf(place, shown).map(listed),
    nextCursor: more ? `${last.created_at}.${last.id}` : null,
  };
}

/** At least one: else a cursor would lead nowhere. */
function fitting(keys: Key[]): Key[] {
  let bytes = 0;
  const tooMany = keys.findIndex((key) => {
    bytes += key.bytes;
    return bytes > limits.sandboxesPageBytesMax;
  });
  return tooMany < 0 ? keys : keys.slice(0, Math.max(1, tooMany));
}

function rowsOf(place: Place, keys: Key[]): Listed[] {
  const rows = place.sql<Listed>(
    `SELECT s.id, s.created_at, s.view, s.as_of,
            EXISTS (SELECT 1 FROM scope p WHERE p.key = s.scope AND p.id = s.id) AS current
       FROM sandbox s WHERE s.id IN (SELECT value FROM json_each(?))`,
    JSON.stringify(keys.map(({ id }) => id)),
  );
  return rows.sort(newestFirst);
}

function newestFirst(a: Pick<Key, "id" | "created_at">, b: Pick<Key, "id" | "created_at">): number {
  return b.created_at - a.created_at || (a.id < b.id ? 1 : -1);
}

export function counts(place: Place): Counts {
  const [unmade] = place.sql<{ n: number }>(
    "SELECT count(*) AS n FROM sandbox WHERE try_at IS NOT NULL AND view IS NULL",
  );
  const [forgotten] = place.sql<{ n: number }>(
    "SELECT count(*) AS n FROM sandbox INDEXED BY sandbox_gone WHERE state = 'destroyed' AND state_since <= ?",
    place.clock() - limits.tombstoneMs,
  );
  // By the index alone: what is not made yet counts as starting there, what lists do not show any more as destroyed.
  const hidden: Partial<Record<string, number>> = {
    starting: unmade?.n ?? 0,
    destroyed: forgotten?.n ?? 0,
  };
  const rows = place
    .sql<{ state: string; n: number }>(
      "SELECT state, count(*) AS n FROM sandbox INDEXED BY sandbox_state GROUP BY state",
    )
    .map(({ state, n }) => ({ state, n: n - (hidden[state] ?? 0) }))
    .filter(({ n }) => n > 0);
  const states = Object.fromEntries(rows.map(({ state, n }) => [state, n])) as Counts["states"];
  const total = rows.reduce((sum, { state, n }) => (state === "destroyed" ? sum : sum + n), 0);
  return { states, total };
}

export function events(place: Place, { after, limit }: EventsQuery): TenantEvents {
  const [newest] = place.sql<{ seq: number | null }>("SELECT max(seq) AS seq FROM event");
  // Numbers that were never given here are of rows that were lost.
  const lost = after > (newest?.seq ?? 0);
  const rows = place.sql<{ seq: number; at: string; sandbox: string; data: string }>(
    "SELECT seq, at, sandbox, data FROM event WHERE seq > ? ORDER BY seq LIMIT ?",
    lost ? 0 : after,
    limit,
  );
  const [oldest] = place.sql<{ seq: number | null }>("SELECT min(seq) AS seq FROM event");
  const last = rows.at(-1);
  return {
    events: rows.map(({ data, ...row }) => ({ ...row, event: JSON.parse(data) })),
    nextCursor: rows.length === limit && last !== undefined ? String(last.seq) : null,
    gap: lost || (oldest?.seq ?? 1) > after + 1,
  };
}

export function streams(place: Place, watchers: Watchers): EventStreams {
  return new EventStreams({
    read(after) {
      const page = events(place, { after, limit: limits.eventsPageMax, follow: "1" });
      return {
        gap: page.gap,
        events: page.events.map((told) => ({ seq: told.seq, type: told.event.type, told })),
      };
    },
    changed: (waitMs) => watchers.change(waitMs),
    isOver: () => false,
  });
}

/** Those that should have moved on by now, in turn: they are asked, not guessed. */
export function stale(place: Place, now: number, after: string, limit: number): string[] {
  const rows = place.sql<{ id: string }>(
    `SELECT id FROM sandbox
      WHERE state IN ('starting', 'pausing', 'destroying') AND phase = 'known' AND as_of < ?
      ORDER BY id <= ?, id LIMIT ?`,
    now - limits.staleAfterMs,
    after,
    limit,
  );
  return rows.map(({ id }) => id);
}

function listed({ view, as_of, current }: Listed): ListedSandbox {
  const { lease: _lease, ...sandbox } = JSON.parse(view) as Sandbox;
  return { ...sandbox, stateAsOf: new Date(as_of).toISOString(), current: current === 1 };
}
