/**
 * Owns taking reports: what a sandbox says of itself becomes its row, in the order of its revisions.
 * Does not own asking for one (actor.ts). Rows that are not there yet are made: a Directory can be told from nothing.
 */

import { isOver } from "../../core/directory/find.ts";
import type { Report } from "../../protocol/directory.ts";
import { scopeKey } from "../../protocol/fields/scope.ts";
import { limits } from "../../protocol/limits.ts";
import type { Place } from "../shared/host.ts";
import { currentOf, pointTo, type Row, rowOf } from "./rows.ts";

/** False: it says nothing new. */
export function take(place: Place, report: Report): boolean {
  const { view, revision, asOf } = report;
  const known = rowOf(place, view.id);
  if (known !== undefined && known.phase === "known" && revision <= known.revision) {
    return takeAgain(place, report, known);
  }
  const gone = view.state === "destroyed" ? 1 : 0;
  const scope = view.scope === undefined ? null : scopeKey(view.scope);
  if (known !== undefined && isInPlace(known, report)) {
    // Most reports: what no index holds. Each index that is named here is a row more to write.
    place.sql(
      "UPDATE sandbox SET view = ?, revision = ?, as_of = ? WHERE id = ?",
      JSON.stringify(view),
      revision,
      asOf,
      view.id,
    );
  } else put(place, report, scope, gone);
  if (scope !== null) pointAt(place, scope, view.id, isOver(view.state));
  takeMetadata(place, view, gone);
  takeEvents(place, report, known?.event_seq ?? 0);
  return true;
}

/** Whether lists find it where they did, and nothing is left to do for it. */
function isInPlace(known: Row, { view }: Report): boolean {
  const { phase, state, state_since, try_at, tries } = known;
  const isAtRest = phase === "known" && try_at === null && tries === 0;
  return isAtRest && state === view.state && state_since === Date.parse(view.stateSince);
}

function put(
  place: Place,
  { view, revision, asOf }: Report,
  scope: string | null,
  gone: number,
): void {
  place.sql(
    `INSERT INTO sandbox
       (id, created_at, scope, repo, branch, config, made_by, phase, state, state_since, gone, view, revision, as_of)
     VALUES (?, ?, ?, ?, ?, ?, ?, 'known', ?, ?, ?, ?, ?, ?)
     ON CONFLICT (id) DO UPDATE SET
       phase = 'known', call = NULL, replaces = NULL, try_at = NULL, tries = 0, state = excluded.state, state_since = excluded.state_since,
       gone = excluded.gone, view = excluded.view, revision = excluded.revision, as_of = excluded.as_of`,
    view.id,
    Date.parse(view.createdAt),
    scope,
    view.scope?.repo ?? null,
    view.scope?.branch ?? null,
    view.scope?.config ?? null,
    view.madeBy ?? null,
    view.state,
    Date.parse(view.stateSince),
    gone,
    JSON.stringify(view),
    revision,
    asOf,
  );
}

/** The same as was known, of a later time; or older, with events that were not told. */
function takeAgain(place: Place, report: Report, known: Row): boolean {
  const { view, revision, asOf } = report;
  // A write only where the row looks old: finding what has not changed waits for no disk.
  if (revision === known.revision && asOf - known.as_of >= limits.staleAfterMs) {
    place.sql("UPDATE sandbox SET as_of = ? WHERE id = ?", asOf, view.id);
  }
  return takeEvents(place, report, known.event_seq);
}

/** A dead one is no scope's; one that lives is its scope's where nobody else is. */
function pointAt(place: Place, scope: string, id: string, over: boolean): void {
  const current = currentOf(place, scope);
  if (over) {
    if (current?.id === id) place.sql("DELETE FROM scope WHERE key = ?", scope);
  } else if (current === undefined) pointTo(place, scope, id);
}

function takeMetadata(
  place: Place,
  { id, metadata, createdAt }: Report["view"],
  gone: number,
): void {
  const before = new Map(
    place
      .sql<{ k: string; v: string }>("SELECT k, v FROM meta WHERE id = ?", id)
      .map(({ k, v }) => [k, v]),
  );
  for (const [k, v] of Object.entries(metadata)) {
    if (before.get(k) !== v) {
      place.sql(
        "INSERT OR REPLACE INTO meta (id, k, v, gone, created_at) VALUES (?, ?, ?, ?, ?)",
        id,
        k,
        v,
        gone,
        Date.parse(createdAt),
      );
    }
    before.delete(k);
  }
  for (const k of before.keys()) place.sql("DELETE FROM meta WHERE id = ? AND k = ?", id, k);
  place.sql("UPDATE meta SET gone = ? WHERE id = ? AND gone <> ?", gone, id, gone);
}

function takeEvents(place: Place, { view, events }: Report, told: number): boolean {
  const fresh = events.filter(({ seq }) => seq > told);
  for (const { at, event } of fresh) {
    place.sql(
      "INSERT INTO event (at, sandbox, data) VALUES (?, ?, ?)",
      at,
      view.id,
      JSON.stringify(event),
    );
  }
  const newest = fresh.at(-1);
  if (newest === undefined) return false;
  place.sql("UPDATE sandbox SET event_seq = ? WHERE id = ?", newest.seq, view.id);
  place.sql(
    "DELETE FROM event WHERE seq <= (SELECT max(seq) FROM event) - ?",
    limits.tenantEventsMax,
  );
  return true;
}
