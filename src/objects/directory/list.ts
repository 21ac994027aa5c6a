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
import { EventStreams } from "../event-stream.ts";
import type { Place, SqlValue } from "../place.ts";
import type { Watchers } from "../sandbox/watchers.ts";

type Listed = { id: string; created_at: number; view: string; as_of: number; current: number };

/** Newest first. `by`: whose a list of "mine" is. */
export function page(place: Place, query: SandboxesQuery, by: string | undefined): SandboxesPage {
  const { where, bindings } = filters(query, by);
  const rows = place.sql<Listed>(
    `SELECT s.id, s.created_at, s.view, s.as_of,
            EXISTS (SELECT 1 FROM scope p WHERE p.key = s.scope AND p.id = s.id) AS current
       FROM sandbox s WHERE ${where.join(" AND ")}
      ORDER BY s.created_at DESC, s.id DESC LIMIT ?`,
    ...bindings,
    query.limit + 1,
  );
  const shown = rows.slice(0, query.limit);
  const last = shown.at(-1);
  const more = rows.length > query.limit && last !== undefined;
  return {
    sandboxes: shown.map(listed),
    nextCursor: more ? `${last.created_at}.${last.id}` : null,
  };
}

export function counts(place: Place): Counts {
  const rows = place.sql<{ state: string; n: number }>(
    "SELECT state, count(*) AS n FROM sandbox WHERE view IS NOT NULL GROUP BY state",
  );
  const states = Object.fromEntries(rows.map(({ state, n }) => [state, n])) as Counts["states"];
  const total = rows.reduce((sum, { state, n }) => (state === "destroyed" ? sum : sum + n), 0);
  return { states, total };
}

export function events(place: Place, { after, limit }: EventsQuery): TenantEvents {
  const rows = place.sql<{ seq: number; at: string; sandbox: string; data: string }>(
    "SELECT seq, at, sandbox, data FROM event WHERE seq > ? ORDER BY seq LIMIT ?",
    after,
    limit,
  );
  const [oldest] = place.sql<{ seq: number | null }>("SELECT min(seq) AS seq FROM event");
  const last = rows.at(-1);
  return {
    events: rows.map(({ data, ...row }) => ({ ...row, event: JSON.parse(data) })),
    nextCursor: rows.length === limit && last !== undefined ? String(last.seq) : null,
    gap: (oldest?.seq ?? 1) > after + 1,
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

/** Those that should have moved on by now: they are asked, not guessed. */
export function stale(place: Place, now: number): string[] {
  const rows = place.sql<{ id: string }>(
    `SELECT id FROM sandbox
      WHERE state IN ('starting', 'pausing', 'destroying') AND phase = 'known' AND as_of < ?
      ORDER BY as_of LIMIT ?`,
    now - limits.staleAfterMs,
    limits.healAtOnceMax,
  );
  return rows.map(({ id }) => id);
}

function filters(
  query: SandboxesQuery,
  by: string | undefined,
): { where: string[]; bindings: SqlValue[] } {
  const where = ["s.view IS NOT NULL"];
  const bindings: SqlValue[] = [];
  const add = (condition: string, ...values: SqlValue[]) => {
    where.push(condition);
    bindings.push(...values);
  };
  const { state, cursor } = query;
  // Dead ones only where they are asked for.
  if (state === undefined) add("s.over = 0");
  else add(`s.state IN (${state.map(() => "?").join(", ")})`, ...state);
  for (const part of ["repo", "branch", "config"] as const) {
    const wanted = query[`scope.${part}`];
    if (wanted !== undefined) add(`s.${part} = ?`, wanted);
  }
  for (const pair of query.metadata) {
    const at = pair.indexOf("=");
    add(
      "EXISTS (SELECT 1 FROM meta m WHERE m.id = s.id AND m.k = ? AND m.v = ?)",
      pair.slice(0, at),
      pair.slice(at + 1),
    );
  }
  if (query.mine === "1") add("s.made_by = ?", by ?? "");
  if (cursor !== undefined) {
    const [at = "", id = ""] = cursor.split(".");
    add("(s.created_at, s.id) < (?, ?)", Number(at), id);
  }
  return { where, bindings };
}

function listed({ view, as_of, current }: Listed): ListedSandbox {
  const { lease: _lease, ...sandbox } = JSON.parse(view) as Sandbox;
  return { ...sandbox, stateAsOf: new Date(as_of).toISOString(), current: current === 1 };
}
