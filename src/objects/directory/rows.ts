/**
 * Owns the rows of a Directory: one for each sandbox, the pointers of scopes, the keys of calls.
 * Does not own lists (list.ts) nor decisions (core/directory).
 */
import { isOver, type Keyed, type Known } from "../../core/directory/find.ts";
import { scopeKey } from "../../protocol/fields/scope.ts";
import { limits } from "../../protocol/limits.ts";
import type { StateName } from "../../protocol/sandbox.ts";
import type { NewSandbox } from "../sandbox/lifecycle/lifecycle.ts";
import type { Place } from "../shared/host.ts";

export type Row = {
  id: string;
  created_at: number;
  scope: string | null;
  phase: "creating" | "known";
  /** While it is being made: what its object is to be told. */
  call: string | null;
  tries: number;
  try_at: number | null;
  state: StateName;
  state_since: number;
  /** Destroyed: listed only where that is asked for. */
  gone: number;
  view: string | null;
  revision: number;
  as_of: number;
  event_seq: number;
  /** While it is being made: which one is ended before it is. */
  replaces: string | null;
};

/** One that is decided on: its object is to be told of it. */
export function insert(
  place: Place,
  make: NewSandbox,
  replaces: string | undefined,
  now: number,
): void {
  const { id, scope, madeBy, createdAt } = make.spec;
  place.sql(
    `INSERT INTO sandbox
       (id, created_at, scope, repo, branch, config, made_by, phase, call, try_at, state, state_since, as_of, replaces)
     VALUES (?, ?, ?, ?, ?, ?, ?, 'creating', ?, ?, 'starting', ?, ?, ?)`,
    id,
    createdAt,
    scope === undefined ? null : scopeKey(scope),
    scope?.repo ?? null,
    scope?.branch ?? null,
    scope?.config ?? null,
    madeBy ?? null,
    JSON.stringify(make),
    now + limits.tellAgainMs,
    createdAt,
    now,
    replaces ?? null,
  );
}

export function rowOf(place: Place, id: string): Row | undefined {
  return place.sql<Row>("SELECT * FROM sandbox WHERE id = ?", id)[0];
}

export function knownOf(row: Row | undefined): Known | undefined {
  if (row === undefined) return undefined;
  const { id, phase, state, replaces } = row;
  const isReplacing = phase === "creating" && replaces !== null;
  return { id, phase, over: isOver(state), isReplacing };
}

export function currentOf(place: Place, scope: string | undefined): Row | undefined {
  if (scope === undefined) return undefined;
  const [pointer] = place.sql<{ id: string }>("SELECT id FROM scope WHERE key = ?", scope);
  return pointer === undefined ? undefined : rowOf(place, pointer.id);
}

export function pointTo(place: Place, scope: string, id: string): void {
  place.sql("INSERT OR REPLACE INTO scope VALUES (?, ?)", scope, id);
}

export function keyedOf(place: Place, key: string | undefined): Keyed | undefined {
  if (key === undefined) return undefined;
  const [row] = place.sql<{ hash: string; id: string }>("SELECT * FROM keyed WHERE key = ?", key);
  if (row === undefined) return undefined;
  return { hash: row.hash, sandbox: knownOf(rowOf(place, row.id)) };
}

export function keep(place: Place, key: string, hash: string, id: string, now: number): void {
  place.sql("DELETE FROM keyed WHERE at <= ?", now - limits.createKeyMs);
  place.sql("INSERT OR REPLACE INTO keyed VALUES (?, ?, ?, ?)", key, hash, id, now);
}

/** It never came to be, or not even its own object remembers it. */
export function forget(place: Place, id: string): void {
  place.together(() => {
    for (const table of ["sandbox", "scope", "keyed", "meta"]) {
      place.sql(`DELETE FROM ${table} WHERE id = ?`, id);
    }
  });
}

/** What is gone is listed as long as its object remembers it. A few with each create and report: more go than come. */
export function forgetOld(place: Place, now: number): void {
  const old = place.sql<{ id: string }>(
    "SELECT id FROM sandbox INDEXED BY sandbox_gone WHERE state = 'destroyed' AND state_since <= ? LIMIT 4",
    now - limits.tombstoneMs,
  );
  for (const { id } of old) forget(place, id);
}

/** Those that a call or the alarm has to go on with. */
export function due(place: Place, now: number): string[] {
  const rows = place.sql<{ id: string }>(
    "SELECT id FROM sandbox WHERE try_at <= ? ORDER BY try_at LIMIT ?",
    now,
    limits.healAtOnceMax,
  );
  return rows.map(({ id }) => id);
}

export function nextTry(place: Place): number | undefined {
  // Without its condition the smallest is looked for among all rows, at each call.
  const [first] = place.sql<{ at: number | null }>(
    "SELECT min(try_at) AS at FROM sandbox WHERE try_at IS NOT NULL",
  );
  return first?.at ?? undefined;
}

/** Before it is tried, so that one that hangs or stops in the middle keeps no other from its turn. */
export function tryAgainLater(place: Place, { id, tries, try_at }: Row, now: number): void {
  if (try_at === null || try_at > now) return;
  const waitMs = Math.min(limits.tellAgainMs * 2 ** tries, limits.tellAgainMaxMs);
  place.sql("UPDATE sandbox SET tries = ?, try_at = ? WHERE id = ?", tries + 1, now + waitMs, id);
}

/** What should have taken its place is not made: the scope is still its own. */
export function giveBack(place: Place, { scope, replaces }: Row): void {
  if (scope === null || replaces === null || currentOf(place, scope) !== undefined) return;
  if (knownOf(rowOf(place, replaces))?.over === false) pointTo(place, scope, replaces);
}
