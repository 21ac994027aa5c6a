/** The rows of a Directory: sandboxes, the current one of each scope, and the idempotency keys of calls. */
import { backOffMs } from "../../core/deadline.ts";
import { type IdempotentFind, isEnding, type KnownSandbox } from "../../core/directory/find.ts";
import { scopeKey } from "../../protocol/fields/scope.ts";
import { limits } from "../../protocol/limits.ts";
import type { StateName } from "../../protocol/sandbox.ts";
import type { NewSandbox } from "../sandbox/lifecycle/lifecycle.ts";
import { insertInto } from "../shared/columns.ts";
import type { ObjectHost } from "../shared/host.ts";

export type SandboxRow = {
  id: string;
  created_at: number;
  scope: string | null;
  phase: "creating" | "known";
  /** While it is being created: the call for its object. */
  call: string | null;
  tries: number;
  try_at: number | null;
  state: StateName;
  state_since: number;
  /** 1 if destroyed: listed only on request. */
  gone: number;
  view: string | null;
  revision: number;
  as_of: number;
  event_seq: number;
  /** While it is being created: the sandbox that is ended first. */
  replaces: string | null;
};

/** Stores a decided sandbox; a task creates it afterwards. */
export function insertSandbox(
  host: ObjectHost,
  make: NewSandbox,
  replaces: string | undefined,
  now: number,
): void {
  const { id, scope, madeBy, createdAt } = make.spec;
  insertInto(host, "sandbox", {
    id,
    created_at: createdAt,
    scope: scope === undefined ? null : scopeKey(scope),
    repo: scope?.repo ?? null,
    branch: scope?.branch ?? null,
    config: scope?.config ?? null,
    made_by: madeBy ?? null,
    phase: "creating",
    call: JSON.stringify(make),
    try_at: now + limits.reportRetryMs,
    state: "starting",
    state_since: createdAt,
    as_of: now,
    replaces: replaces ?? null,
  });
}

export function rowOf(host: ObjectHost, id: string): SandboxRow | undefined {
  return host.sql<SandboxRow>("SELECT * FROM sandbox WHERE id = ?", id)[0];
}

export function toKnownSandbox(row: SandboxRow | undefined): KnownSandbox | undefined {
  if (row === undefined) return undefined;
  const { id, phase, state, replaces } = row;
  const isReplacing = phase === "creating" && replaces !== null;
  return { id, phase, isEnding: isEnding(state), isReplacing };
}

/** All sandboxes that are not destroyed, those that are still being created too. */
export function liveCount(host: ObjectHost): number {
  return host.sql<{ n: number }>("SELECT count(*) AS n FROM sandbox WHERE gone = 0")[0]?.n ?? 0;
}

/** Destroyed ones count as well: they stay known for longer than a minute. */
export function createdSince(host: ObjectHost, since: number): number {
  const [row] = host.sql<{ n: number }>(
    "SELECT count(*) AS n FROM sandbox WHERE gone IN (0, 1) AND created_at > ?",
    since,
  );
  return row?.n ?? 0;
}

export function currentOf(host: ObjectHost, scope: string | undefined): SandboxRow | undefined {
  if (scope === undefined) return undefined;
  const [pointer] = host.sql<{ id: string }>("SELECT id FROM scope WHERE key = ?", scope);
  return pointer === undefined ? undefined : rowOf(host, pointer.id);
}

export function setScope(host: ObjectHost, scope: string, id: string): void {
  host.sql("INSERT OR REPLACE INTO scope VALUES (?, ?)", scope, id);
}

export function idempotentFindOf(
  host: ObjectHost,
  key: string | undefined,
): IdempotentFind | undefined {
  if (key === undefined) return undefined;
  const [row] = host.sql<{ hash: string; id: string }>("SELECT * FROM keyed WHERE key = ?", key);
  if (row === undefined) return undefined;
  return { hash: row.hash, sandbox: toKnownSandbox(rowOf(host, row.id)) };
}

export function rememberKey(
  host: ObjectHost,
  key: string,
  hash: string,
  id: string,
  now: number,
): void {
  host.sql("DELETE FROM keyed WHERE at <= ?", now - limits.createKeyMs);
  host.sql("INSERT OR REPLACE INTO keyed VALUES (?, ?, ?, ?)", key, hash, id, now);
}

/** The key of one call belongs to all sandboxes that it created. No caller's key has this form. */
export function keyOfOther(key: string, index: number): string {
  return `${key}\n${index}`;
}

export function otherIdsOf(host: ObjectHost, key: string | undefined, count: number): string[] {
  if (key === undefined) return [];
  return Array.from({ length: count }, (_, index) =>
    idempotentFindOf(host, keyOfOther(key, index)),
  ).flatMap((known) => known?.sandbox?.id ?? []);
}

/** For a sandbox that was never created, or that its own object has forgotten. */
export function deleteSandbox(host: ObjectHost, id: string): void {
  host.transaction(() => {
    for (const table of ["sandbox", "scope", "keyed", "meta"]) {
      host.sql(`DELETE FROM ${table} WHERE id = ?`, id);
    }
  });
}

/** Deletes sandboxes that their objects have forgotten: a few at a time, but more than are added in the same call. */
export function deleteForgotten(host: ObjectHost, now: number): void {
  const old = host.sql<{ id: string }>(
    "SELECT id FROM sandbox INDEXED BY sandbox_gone WHERE state = 'destroyed' AND state_since <= ? LIMIT 4",
    now - limits.tombstoneMs,
  );
  for (const { id } of old) deleteSandbox(host, id);
}

/** Sandboxes with a task that is due. */
export function dueSandboxes(host: ObjectHost, now: number): string[] {
  const rows = host.sql<{ id: string }>(
    "SELECT id FROM sandbox WHERE try_at <= ? ORDER BY try_at LIMIT ?",
    now,
    limits.staleProbesMax,
  );
  return rows.map(({ id }) => id);
}

export function nextTryAt(host: ObjectHost): number | undefined {
  // The condition selects the partial index; without it, each call would scan all rows.
  const [first] = host.sql<{ at: number | null }>(
    "SELECT min(try_at) AS at FROM sandbox WHERE try_at IS NOT NULL",
  );
  return first?.at ?? undefined;
}

/** Called before the try, so that a try that hangs or crashes does not block the others. */
export function deferTry(host: ObjectHost, { id, tries, try_at }: SandboxRow, now: number): void {
  if (try_at === null || try_at > now) return;
  const waitMs = backOffMs(limits.reportRetryMs, tries, limits.reportRetryMaxMs);
  host.sql("UPDATE sandbox SET tries = ?, try_at = ? WHERE id = ?", tries + 1, now + waitMs, id);
}

/** Points the scope to the present sandbox again, because its successor is not created after all. */
export function restoreScope(host: ObjectHost, { scope, replaces }: SandboxRow): void {
  if (scope === null || replaces === null || currentOf(host, scope) !== undefined) return;
  if (toKnownSandbox(rowOf(host, replaces))?.isEnding === false) setScope(host, scope, replaces);
}
