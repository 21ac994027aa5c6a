/** The rows of runs. A run, its parts and its idempotency key are deleted together. */
import type { Run, RunPart } from "../../core/plan/record.ts";
import { headView, type RunHead } from "../../core/plan/view.ts";
import { limits } from "../../protocol/limits.ts";
import type { CommitsPage } from "../../protocol/plan.ts";
import type { ObjectHost } from "../shared/host.ts";

type RunRow = { n: number; head: string };

export function loadOpenRun(host: ObjectHost): Run | null {
  return withParts(host, host.sql<RunRow>("SELECT n, head FROM run WHERE ended_at IS NULL")[0]);
}

export function loadLastRun(host: ObjectHost): Run | null {
  const [row] = host.sql<RunRow>(
    "SELECT n, head FROM run WHERE ended_at IS NOT NULL ORDER BY n DESC LIMIT 1",
  );
  return withParts(host, row);
}

export function loadRun(host: ObjectHost, n: number): Run | null {
  return withParts(host, host.sql<RunRow>("SELECT n, head FROM run WHERE n = ?", n)[0]);
}

/** Newest first. */
export function commitsPage(
  host: ObjectHost,
  before: number | undefined,
  limit: number,
): CommitsPage {
  const rows = host.sql<RunRow>(
    "SELECT n, head FROM run WHERE n < ? ORDER BY n DESC LIMIT ?",
    before ?? Number.MAX_SAFE_INTEGER,
    limit + 1,
  );
  const shown = rows.slice(0, limit);
  const last = shown.at(-1);
  return {
    commits: shown.map(({ head }) => headView(JSON.parse(head) as RunHead)),
    nextCursor: rows.length > limit && last !== undefined ? String(last.n) : null,
  };
}

export function loadRunOfKey(
  host: ObjectHost,
  key: string,
): { hash: string; n: number } | undefined {
  return host.sql<{ hash: string; n: number }>("SELECT hash, n FROM keyed WHERE key = ?", key)[0];
}

export function saveKey(host: ObjectHost, key: string, hash: string, n: number): void {
  host.sql("INSERT OR REPLACE INTO keyed VALUES (?, ?, ?)", key, hash, n);
}

/** Runs without effect have a limit of their own, so that a caller who retries often displaces no committed run. */
export function deleteOldRuns(host: ObjectHost, { decision }: Run): void {
  const go = decision?.go === true;
  const keptMax = go ? limits.commitsStoredMax : limits.abortedRunsStoredMax;
  const old = host.sql<{ n: number }>(
    `SELECT n FROM run WHERE ended_at IS NOT NULL AND json_extract(head, '$.decision.go') = ?
     ORDER BY n DESC LIMIT -1 OFFSET ?`,
    go ? 1 : 0,
    keptMax,
  );
  for (const { n } of old) {
    for (const table of ["run", "part", "keyed"]) {
      host.sql(`DELETE FROM ${table} WHERE n = ?`, n);
    }
  }
}

export function deleteAllRuns(host: ObjectHost): void {
  for (const table of ["run", "part", "keyed"]) host.sql(`DELETE FROM ${table}`);
}

function withParts(host: ObjectHost, row: RunRow | undefined): Run | null {
  if (row === undefined) return null;
  const parts = host.sql<{ body: string }>(
    "SELECT body FROM part WHERE n = ? ORDER BY sandbox",
    row.n,
  );
  return {
    ...(JSON.parse(row.head) as RunHead),
    parts: parts.map(({ body }) => JSON.parse(body) as RunPart),
  };
}
