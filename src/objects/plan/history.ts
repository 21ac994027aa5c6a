/**
 * Owns the rows of runs as they are read again: the open one, the newest that has ended, one by its number, pages of
 * them, and by which key a run was asked for. They are kept as long as each other.
 */
import type { Part, Run } from "../../core/plan/record.ts";
import { commitView, type Head, headView } from "../../core/plan/view.ts";
import { limits } from "../../protocol/limits.ts";
import type { Commit, CommitsPage } from "../../protocol/plan.ts";
import type { Place } from "../shared/host.ts";

type Row = { n: number; head: string };

export function openRun(place: Place): Run | null {
  return whole(place, place.sql<Row>("SELECT n, head FROM run WHERE ended_at IS NULL")[0]);
}

export function endedRun(place: Place): Run | null {
  const [row] = place.sql<Row>(
    "SELECT n, head FROM run WHERE ended_at IS NOT NULL ORDER BY n DESC LIMIT 1",
  );
  return whole(place, row);
}

export function runOf(place: Place, n: number): Run | null {
  return whole(place, place.sql<Row>("SELECT n, head FROM run WHERE n = ?", n)[0]);
}

export function commitOf(place: Place, n: number): Commit | undefined {
  const run = runOf(place, n);
  return run === null ? undefined : commitView(run);
}

/** Newest first. */
export function page(place: Place, before: number | undefined, limit: number): CommitsPage {
  const rows = place.sql<Row>(
    "SELECT n, head FROM run WHERE n < ? ORDER BY n DESC LIMIT ?",
    before ?? Number.MAX_SAFE_INTEGER,
    limit + 1,
  );
  const shown = rows.slice(0, limit);
  const last = shown.at(-1);
  return {
    commits: shown.map(({ head }) => headView(JSON.parse(head) as Head)),
    nextCursor: rows.length > limit && last !== undefined ? String(last.n) : null,
  };
}

export function keyedRun(place: Place, key: string): { hash: string; n: number } | undefined {
  return place.sql<{ hash: string; n: number }>("SELECT hash, n FROM keyed WHERE key = ?", key)[0];
}

export function keepKey(place: Place, key: string, hash: string, n: number): void {
  place.sql("INSERT OR REPLACE INTO keyed VALUES (?, ?, ?)", key, hash, n);
}

/** After the end of a run. Those that came to nothing, of which somebody who tries again makes many, displace no other. */
export function forgetOld(place: Place, { decision }: Run): void {
  const go = decision?.go === true;
  const kept = go ? limits.commitsKeptMax : limits.abortedRunsKeptMax;
  const old = place.sql<{ n: number }>(
    `SELECT n FROM run WHERE ended_at IS NOT NULL AND json_extract(head, '$.decision.go') = ?
     ORDER BY n DESC LIMIT -1 OFFSET ?`,
    go ? 1 : 0,
    kept,
  );
  for (const { n } of old) {
    for (const table of ["run", "part", "keyed"]) {
      place.sql(`DELETE FROM ${table} WHERE n = ?`, n);
    }
  }
}

export function forgetAll(place: Place): void {
  for (const table of ["run", "part", "keyed"]) place.sql(`DELETE FROM ${table}`);
}

function whole(place: Place, row: Row | undefined): Run | null {
  if (row === undefined) return null;
  const parts = place.sql<{ body: string }>(
    "SELECT body FROM part WHERE n = ? ORDER BY sandbox",
    row.n,
  );
  return {
    ...(JSON.parse(row.head) as Head),
    parts: parts.map(({ body }) => JSON.parse(body) as Part),
  };
}
