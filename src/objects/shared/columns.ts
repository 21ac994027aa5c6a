/** Inserts rows by the names of their columns. */
import type { ObjectHost, SqlValue } from "./host.ts";

type Columns = Record<string, SqlValue>;

export function insertInto(host: Pick<ObjectHost, "sql">, table: string, columns: Columns): void {
  host.sql(`INSERT ${intoTable(table, columns)}`, ...Object.values(columns));
}

/** Replaces the row that has the same key. */
export function replaceInto(host: Pick<ObjectHost, "sql">, table: string, columns: Columns): void {
  host.sql(`INSERT OR REPLACE ${intoTable(table, columns)}`, ...Object.values(columns));
}

function intoTable(table: string, columns: Columns): string {
  const names = Object.keys(columns);
  return `INTO ${table} (${names.join(", ")}) VALUES (${names.map(() => "?").join(", ")})`;
}
