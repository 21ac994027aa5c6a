/** Writes rows by the names of their columns. */
import type { ObjectHost, SqlValue } from "./host.ts";

type Columns = Record<string, SqlValue>;

export function insertInto(host: Pick<ObjectHost, "sql">, table: string, columns: Columns): void {
  host.sql(`INSERT ${intoTable(table, columns)}`, ...Object.values(columns));
}

/** Replaces the row that has the same key. */
export function replaceInto(host: Pick<ObjectHost, "sql">, table: string, columns: Columns): void {
  host.sql(`INSERT OR REPLACE ${intoTable(table, columns)}`, ...Object.values(columns));
}

/**
 * Writes how a list has changed, one row for each entry; the key has the same name in both. Entries are compared by
 * identity. Rows are deleted first, because a new row may have a value that must be unique.
 */
export function saveList<Key extends string, Entry extends Record<Key, SqlValue>>(
  host: Pick<ObjectHost, "sql">,
  table: string,
  key: Key,
  before: readonly Entry[],
  after: readonly Entry[],
  toColumns: (entry: Entry) => Columns,
): void {
  if (after === before) return;
  const kept = new Set(after);
  const known = new Set(before);
  const added = after.filter((entry) => !known.has(entry));
  const replaced = new Set(added.map((entry) => entry[key]));
  for (const entry of before) {
    if (kept.has(entry) || replaced.has(entry[key])) continue;
    host.sql(`DELETE FROM ${table} WHERE ${key} = ?`, entry[key]);
  }
  for (const entry of added) replaceInto(host, table, toColumns(entry));
}

function intoTable(table: string, columns: Columns): string {
  const names = Object.keys(columns);
  return `INTO ${table} (${names.join(", ")}) VALUES (${names.map(() => "?").join(", ")})`;
}
