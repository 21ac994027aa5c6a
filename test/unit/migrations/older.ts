/**
 * Converts the rows of an object back to an earlier version: runs only its first migrations, and keeps of the stored values
 * those that had a column then. Which migrations a version still needs is found out by running them.
 */
import type { ObjectHost } from "../../../src/objects/shared/host.ts";
import type { FakeBerth, StoredRow } from "../../fakes/berth.ts";

/** By table and column: the value of a column that was removed or renamed since. */
export type Formerly = Record<string, (row: StoredRow) => string | number | null | undefined>;

export type Migrate = (host: ObjectHost) => void;
export type Dump = ReturnType<FakeBerth["dump"]>;

/** The statements that bring an object of this version to the newest one. */
function stepsFrom(migrate: Migrate, version: number): string[] {
  const statements: string[] = [];
  const sql = (query: string) => {
    if (query.includes("sqlite_master")) return [{ n: version === 0 ? 0 : 1 }];
    if (query.startsWith("SELECT version")) return [{ version }];
    if (!query.includes("schema_version")) statements.push(query);
    return [];
  };
  const transaction = (work: () => void) => work();
  migrate({ sql, transaction } as unknown as ObjectHost);
  return statements;
}

export function newestOf(migrate: Migrate): number {
  let version = 1;
  while (stepsFrom(migrate, version).length > 0) version++;
  return version;
}

/** Rewrites the object's rows as that version would have had them. Returns the tables that it had. */
export function writeOlderRows(
  berth: FakeBerth,
  id: string,
  {
    migrate,
    version,
    dump,
    formerly = {},
  }: { migrate: Migrate; version: number; dump: Dump; formerly?: Formerly },
): Set<string> {
  const all = stepsFrom(migrate, 0);
  const before = all.slice(0, all.length - stepsFrom(migrate, version).length);
  for (const statement of before) berth.rows(id, statement);
  const had = new Set(berth.dump(id).keys());
  for (const table of had) {
    for (const row of dump.get(table) ?? []) put(berth, id, table, row, formerly);
  }
  berth.rows(id, "CREATE TABLE schema_version (version INTEGER NOT NULL)");
  berth.rows(id, "INSERT INTO schema_version VALUES (?)", version);
  return had;
}

function put(
  berth: FakeBerth,
  id: string,
  table: string,
  row: StoredRow,
  formerly: Formerly,
): void {
  const of = (name: string) => row[name] ?? formerly[`${table}.${name}`]?.(row);
  const columns = [...berth.columns(id, table)].filter((name) => of(name) !== undefined);
  berth.rows(
    id,
    `INSERT OR REPLACE INTO ${table} (${columns.join(", ")}) VALUES (${columns.map(() => "?").join(", ")})`,
    ...columns.map((name) => of(name) ?? null),
  );
}
