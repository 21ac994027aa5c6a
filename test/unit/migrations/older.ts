/**
 * Owns taking the rows of an object back to an earlier version: its first steps, and of what is stored only what had a
 * place then. Does not own the steps: it finds them out by what each version still has to do.
 */
import type { Place } from "../../../src/objects/shared/host.ts";
import type { FakeBerth, Stored } from "../../fakes/berth.ts";

/** By table and column: what stood in one that is no more, or has another name. */
export type Formerly = Record<string, (row: Stored) => string | number | null | undefined>;

export type Migrate = (place: Place) => void;
export type Dump = ReturnType<FakeBerth["dump"]>;

/** What brings an object of this version to the newest one. */
function stepsFrom(migrate: Migrate, version: number): string[] {
  const said: string[] = [];
  const sql = (query: string) => {
    if (query.includes("sqlite_master")) return [{ n: version === 0 ? 0 : 1 }];
    if (query.startsWith("SELECT version")) return [{ version }];
    if (!query.includes("schema_version")) said.push(query);
    return [];
  };
  const together = (work: () => void) => work();
  migrate({ sql, together } as unknown as Place);
  return said;
}

export function newestOf(migrate: Migrate): number {
  let version = 1;
  while (stepsFrom(migrate, version).length > 0) version++;
  return version;
}

/** The object's rows, as that version would have had them. Answers which tables it had. */
export function lay(
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

function put(berth: FakeBerth, id: string, table: string, row: Stored, formerly: Formerly): void {
  const of = (name: string) => row[name] ?? formerly[`${table}.${name}`]?.(row);
  const columns = [...berth.columns(id, table)].filter((name) => of(name) !== undefined);
  berth.rows(
    id,
    `INSERT OR REPLACE INTO ${table} (${columns.join(", ")}) VALUES (${columns.map(() => "?").join(", ")})`,
    ...columns.map((name) => of(name) ?? null),
  );
}
