/** Applies the reports of sandboxes by their revisions; a Directory can be rebuilt from reports alone. */
import { isEnding } from "../../core/directory/find.ts";
import type { Report } from "../../protocol/directory.ts";
import { scopeKey } from "../../protocol/fields/scope.ts";
import { limits } from "../../protocol/limits.ts";
import { insertInto, replaceInto } from "../shared/columns.ts";
import type { ObjectHost } from "../shared/host.ts";
import { currentOf, rowOf, type SandboxRow, setScope } from "./rows.ts";

/** False if the report contains nothing new. */
export function applyReport(host: ObjectHost, report: Report): boolean {
  const { view, revision, asOf } = report;
  const known = rowOf(host, view.id);
  if (known !== undefined && known.phase === "known" && revision <= known.revision) {
    return applyOldReport(host, report, known);
  }
  const destroyed = view.state === "destroyed" ? 1 : 0;
  const scope = view.scope === undefined ? null : scopeKey(view.scope);
  if (known !== undefined && isListedUnchanged(known, report)) {
    // The usual case writes only columns without an index, because each index costs one more row to write.
    host.sql(
      "UPDATE sandbox SET view = ?, revision = ?, as_of = ? WHERE id = ?",
      JSON.stringify(view),
      revision,
      asOf,
      view.id,
    );
  } else upsertRow(host, report, scope, destroyed);
  if (scope !== null) updateScope(host, scope, view.id, isEnding(view.state));
  applyMetadata(host, view, destroyed);
  appendEvents(host, report, known?.event_seq ?? 0);
  return true;
}

/** True if no indexed column changes and the sandbox has no pending task. */
function isListedUnchanged(known: SandboxRow, { view }: Report): boolean {
  const { phase, state, state_since, try_at, tries } = known;
  const isAtRest = phase === "known" && try_at === null && tries === 0;
  return isAtRest && state === view.state && state_since === Date.parse(view.stateSince);
}

function upsertRow(
  host: ObjectHost,
  { view, revision, asOf }: Report,
  scope: string | null,
  destroyed: number,
): void {
  host.sql(
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
    destroyed,
    JSON.stringify(view),
    revision,
    asOf,
  );
}

/** Applies a report that is not newer: it may confirm the row at a later time, or bring events that are still missing. */
function applyOldReport(host: ObjectHost, report: Report, known: SandboxRow): boolean {
  const { view, revision, asOf } = report;
  // Writes only if the row looks outdated, so that a find that changes nothing waits for no disk.
  if (revision === known.revision && asOf - known.as_of >= limits.staleAfterMs) {
    host.sql("UPDATE sandbox SET as_of = ? WHERE id = ?", asOf, view.id);
  }
  return appendEvents(host, report, known.event_seq);
}

/** Removes an ending sandbox from its scope; points a scope without a sandbox to this one. */
function updateScope(host: ObjectHost, scope: string, id: string, over: boolean): void {
  const current = currentOf(host, scope);
  if (over) {
    if (current?.id === id) host.sql("DELETE FROM scope WHERE key = ?", scope);
  } else if (current === undefined) setScope(host, scope, id);
}

function applyMetadata(
  host: ObjectHost,
  { id, metadata, createdAt }: Report["view"],
  destroyed: number,
): void {
  const before = new Map(
    host
      .sql<{ k: string; v: string }>("SELECT k, v FROM meta WHERE id = ?", id)
      .map(({ k, v }) => [k, v]),
  );
  for (const [k, v] of Object.entries(metadata)) {
    if (before.get(k) !== v) {
      const created_at = Date.parse(createdAt);
      replaceInto(host, "meta", { id, k, v, gone: destroyed, created_at });
    }
    before.delete(k);
  }
  for (const k of before.keys()) host.sql("DELETE FROM meta WHERE id = ? AND k = ?", id, k);
  host.sql("UPDATE meta SET gone = ? WHERE id = ? AND gone <> ?", destroyed, id, destroyed);
}

function appendEvents(host: ObjectHost, { view, events }: Report, newestSeq: number): boolean {
  const fresh = events.filter(({ seq }) => seq > newestSeq);
  for (const entry of fresh) {
    const data = JSON.stringify(entry.event);
    insertInto(host, "event", { at: entry.at, sandbox: view.id, data });
  }
  const newest = fresh.at(-1);
  if (newest === undefined) return false;
  host.sql("UPDATE sandbox SET event_seq = ? WHERE id = ?", newest.seq, view.id);
  host.sql(
    "DELETE FROM event WHERE seq <= (SELECT max(seq) FROM event) - ?",
    limits.tenantEventsMax,
  );
  return true;
}
